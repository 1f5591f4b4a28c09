//! Where there is no memory for one more, and what is told of a request that never came once more.

use super::{Open, World, by};
use crate::in_flight::reports::Sums;
use diana_core::verdict::Verdict;
use kit::ending::FakeEnding;
use kit::told::Told;

/// There is no memory for one more, and this one has its place already.
#[test]
fn whoever_was_let_through_is_not_one_too_many() {
    let mut world = World::new("in_flight: 1000000");
    let mut open: Vec<Open> = (0..250_000).map_while(|_| world.request(0, "/", 1)).collect();
    assert!(open.len() == 250_000 && world.request(0, "/", 1).is_none());
    world.redirect(open.remove(0));
    assert!(world.request(0, "/else", 1).is_some());
}

/// The page on Envoy advises to raise the limit by the number of hops.
#[test]
fn rule_that_settles_nothing_charges_each_hop() {
    let plain = "{name: plain, actor: account, unit: day, rpu: 3, algo: W}";
    let settled = "{name: all, actor: account, in_flight: 9}";
    let mut world = World::of(&format!("limits: [{{Url: /, rules: [{plain}, {settled}]}}]"));
    let first = world.request(0, "/", 1).expect("it fits");
    world.redirect(first);
    assert!(world.request(0, "/", 1).is_some(), "its second hop, the second permit");
    assert!(world.request(0, "/", 2).is_some(), "the third permit");
    assert!(world.request(0, "/", 3).is_none());
}

/// What was reserved for a request that never came once more is told as what came back; a place is none of that.
#[test]
fn what_nobody_took_over_is_told() {
    let costs =
        "unit: day, rpu: 40, algo: W, cost: {response: {header: x-used}, reserve: 10, max: 10}";
    for (rule, told) in [("in_flight: 4", 0), (costs, 10)] {
        let mut world = World::new(rule);
        let open = world.request(0, "/", 1).expect("it fits");
        world.redirect(open);
        assert!(world.request(0, "/else", 2).is_some());
        let sums = Sums::default();
        world.workers[0].flush("n", &sums);
        assert_eq!(sums.of("diana.n.rule.all.refunded"), told, "{rule}");
        assert_eq!(sums.of("diana.n.rule.all.settled"), i64::from(told > 0), "{rule}");
    }
}

/// The rules that headers tell of.
fn told(headers: &[(&'static str, String)]) -> Vec<String> {
    let of = |(name, value): &(&str, String)| (*name == "ratelimit").then(|| value.clone());
    let rules = headers.iter().filter_map(of).next().unwrap_or_default();
    rules.split('"').skip(1).step_by(2).map(Into::into).collect()
}

/// What the first one was charged says nothing of what its caller has left now, also where the other one is refused.
#[test]
fn only_rules_that_judge_it_anew_are_told_of() {
    let mut world = World::of(
        "accepted: {headers: true}
limits: [{Url: /, rules: [{name: all, actor: account, unit: day, rpu: 4, algo: W, count: {status: [401]}}]},
  {Url: /else, rules: [{name: else, actor: account, unit: day, rpu: 1, algo: W}]}]",
    );
    for is_first in [true, false] {
        let open = world.request(0, "/", 1).expect("it fits");
        world.redirect(open);
        let headers = match world.workers[0].decide(&by("/else", 1), &world.clock) {
            Verdict::Admit(_, Some(report)) if is_first => report.headers(),
            Verdict::Refuse(refusal) if !is_first => refusal.headers(),
            verdict => panic!("{verdict:?}"),
        };
        assert_eq!(told(&headers), ["else"]);
    }
}

const COSTS: &str =
    "unit: day, rpu: 40, algo: W, cost: {response: {header: x-used}, reserve: 10, max: 10}";

/// Another one that is followed comes before it, or it goes where the rule does not apply: others have what was reserved
/// for it at once.
#[test]
fn what_is_not_taken_over_is_there_for_others() {
    let first = format!("{{Url: /first, rules: [{{name: all, actor: account, {COSTS}}}]}}");
    let second = "{Url: /else, rules: [{name: else, actor: account, unit: day, rpu: 9, algo: W}]}";
    let mut world = World::of(&format!("limits: [{first}, {second}]"));
    let sums = Sums::default();
    for (connections, back) in [(vec![1], 1), (vec![2, 1], 2)] {
        let all: Vec<Open> =
            (0..4).map(|it| world.request(0, "/first", it).expect("it fits")).collect();
        let (go, rest): (Vec<Open>, Vec<Open>) =
            all.into_iter().partition(|open| connections.contains(&open.connection));
        go.into_iter().rev().for_each(|open| world.redirect(open));
        let before = sums.of("diana.n.rule.all.refunded");
        assert!(world.request(0, "/else", 1).is_some());
        let others: Vec<Open> = (0..4).filter_map(|_| world.request(1, "/first", 9)).collect();
        assert_eq!(others.len(), back);
        world.workers[0].flush("n", &sums);
        assert_eq!(sums.of("diana.n.rule.all.refunded") - before, 10 * back as i64);
        for open in rest.into_iter().chain(others) {
            world.end(open, &FakeEnding::unreachable());
        }
        world.workers[0].flush("n", &sums);
    }
}

/// What the response said that is followed is not what the other one says.
#[test]
fn what_was_heard_of_the_first_response_is_forgotten() {
    let mut world = World::new(COSTS);
    let mut open = world.request(0, "/", 1).expect("it fits");
    let came = FakeEnding::answered(302).header("x-used", "3");
    world.workers[0].hear_response(&mut open.permit, &came);
    world.redirect(open);
    let again = world.request(0, "/", 1).expect("it was let through");
    world.end(again, &FakeEnding::left(None));
    let sums = Sums::default();
    world.workers[0].flush("n", &sums);
    assert_eq!(sums.of("diana.n.rule.all.refunded"), 0);
    assert_eq!(sums.of("diana.n.rule.all.untold_client_left"), 1);
}

/// What comes back of a redirect that is refused is what was reserved for its first leg.
#[test]
fn what_comes_back_of_a_refused_redirect_is_told_as_it_was_reserved() {
    for reserve in [0, 3, 10] {
        let costs = COSTS.replace("reserve: 10", &format!("reserve: {reserve}"));
        let mut world = World::with(&costs, "actor: account, unit: day, rpu: 0");
        let open = world.request(0, "/", 1).expect("it fits");
        world.redirect(open);
        assert!(world.request(0, "/else", 1).is_none());
        let sums = Sums::default();
        world.workers[0].flush("n", &sums);
        let told = ["refunded", "settled"].map(|it| sums.of(&format!("diana.n.rule.all.{it}")));
        assert_eq!(told, [reserve, 1]);
    }
}
