//! Callers whom a worker knows are charged by a shorter branch. It decides as the long one, which an engine takes that
//! tells of what it admits.

use diana_core::algorithm::REGISTRY;
use diana_core::report::explained::Explained;
use diana_core::verdict::Verdict;
use fastrand::Rng;
use kit::fake::FakeRequest;

use super::Gate;

const ACTORS: [&str; 3] = ["all", "account", "[account, address]"];
const URLS: [&str; 3] = ["/", "/a", "/a/b"];

fn rule(rng: &mut Rng, number: usize) -> String {
    let algo = REGISTRY[rng.usize(..REGISTRY.len())].short;
    let (actor, rpu) = (ACTORS[rng.usize(..ACTORS.len())], rng.u32(3..12));
    // A line of a few a minute would hold requests for longer than it may.
    let unit = if algo == "LB" || rng.bool() { "second" } else { "minute" };
    let shadow = ["", ", shadow: true"][usize::from(rng.u8(..4) == 0)];
    let cost = if rng.u8(..4) == 0 { ", cost: {header: x-cost, max: 3}" } else { "" };
    format!(
        "{{name: r{number}, actor: {actor}, unit: {unit}, rpu: {rpu}, algo: {algo}, \
         scope: local{shadow}{cost}}}"
    )
}

fn limits(rng: &mut Rng) -> String {
    let entries = URLS.iter().enumerate().map(|(entry, url)| {
        let rules: Vec<_> = (0..rng.usize(1..3)).map(|at| rule(rng, 10 * entry + at)).collect();
        format!("{{Url: {url}, rules: [{}]}}", rules.join(", "))
    });
    entries.collect::<Vec<_>>().join(", ")
}

#[test]
fn known_callers_are_decided_about_as_all_others() {
    let mut rng = Rng::with_seed(kit::seed::next());
    let (mut admitted, mut refused) = (0, 0);
    for _ in 0..60 {
        let limits = limits(&mut rng);
        let keys = rng.u32(2..6);
        let of = |told: &str| {
            let actors = "actors: {address: [{client_address: {}}]}";
            Gate::new(&format!("{told}keys: {keys}\n{actors}\nlimits: [{limits}]"))
        };
        let (mut short, mut long) = (of(""), of("accepted: {filter_state: true}\n"));
        for _ in 0..300 {
            let (path, caller) = (["/", "/a/x", "/a/b"][rng.usize(..3)], rng.u8(..5).to_string());
            let request = FakeRequest::get(path)
                .header("x-account-id", &caller)
                .header("x-cost", rng.u8(..4).to_string())
                .from("192.0.2.1:40000");
            let found = short.admits(&request);
            assert_eq!(found, long.admits(&request), "{limits}");
            admitted += u32::from(found);
            refused += u32::from(!found);
            let most = if rng.bool() { 200_000 } else { 3_000 };
            let pause = rng.u64(..most);
            short.wait(pause);
            long.wait(pause);
            if rng.u8(..20) == 0 {
                assert_eq!(short.metrics(), long.metrics(), "{limits}");
            }
        }
    }
    assert!(admitted > 2_000 && refused > 2_000, "too tame: {admitted} and {refused}");
}

/// An operator who asks why is told of what was admitted, too.
#[test]
fn what_all_rules_said_of_a_known_caller_is_told_whoever_asks() {
    let rules = ["all", "account"].map(|actor| {
        format!("{{name: {actor}, actor: {actor}, unit: minute, rpu: 9, algo: W, scope: local}}")
    });
    let mut gate = Gate::new(&format!("limits: [{{Url: /, rules: [{}]}}]", rules.join(", ")));
    assert!((0..2).all(|_| gate.admits(&super::from("ann"))));
    gate.engine.explain(true);
    let (verdict, skipped) = gate.engine.decide_explained(&super::from("ann"), &gate.clock);
    gate.engine.explain(false);
    let Verdict::Admit(_, Some(report)) = verdict else { panic!("{verdict:?}") };
    let told: Vec<_> = report.explained.iter().map(Explained::json).collect();
    assert_eq!((told.len(), skipped), (2, vec![]), "{told:?}");
    assert!(told.iter().all(|rule| rule.contains("\"remaining\":6")), "{told:?}");
}
