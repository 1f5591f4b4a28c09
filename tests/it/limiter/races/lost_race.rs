//! A request with a concurrent charge by another worker just before its own.

use kit::fake::FakeMetrics;
use std::cell::RefCell;
use std::rc::Rc;

use diana_limiter::Verdict;

use super::Gateway;
use kit::store::gateway::START;

/// Two workers. The second one decides about a caller's request just before the first one writes
/// for the `time`th time. Returns both outcomes.
fn overtaken(text: &str, time: usize, caller: usize) -> (Rc<Gateway>, [Verdict; 2]) {
    let gateway = Rc::new(Gateway::new(text.into(), 2));
    let (own, other) = overtake(&gateway, time, caller);
    (gateway, [own, other.expect("it came between")])
}

/// As above, without a second outcome if there were fewer writes.
fn overtake(gateway: &Rc<Gateway>, time: usize, caller: usize) -> (Verdict, Option<Verdict>) {
    let (here, other) = (Rc::downgrade(gateway), Rc::new(RefCell::new(None)));
    let (there, mut writes) = (other.clone(), 0);
    *gateway.data.before_swap.borrow_mut() = Some(Box::new(move |_, _| {
        writes += 1;
        if writes == time {
            let gateway = here.upgrade().unwrap();
            *there.borrow_mut() = Some(gateway.decide(1, caller));
        }
    }));
    let own = gateway.decide(0, caller);
    gateway.data.before_swap.borrow_mut().take();
    (own, other.borrow_mut().take())
}

/// A count of a filter has no owner, so it cannot be returned.
#[test]
fn lost_race_charges_no_daily_quota() {
    let text = "limits: [{Url: /, rules: [
        {name: posts, actor: account, unit: day, rpu: 5, algo: W, scope: local, quota: {accounts: 1000}},
        {name: once, actor: account, unit: minute, rpu: 1, algo: W, scope: gateway}]}]";
    let (gateway, [own, other]) = overtaken(text, 1, 0);
    assert!(matches!(own, Verdict::Refuse(_)) && matches!(other, Verdict::Admit(..)));
    for minute in 0..5 {
        gateway.clock.0.set(gateway.clock.0.get().later(60_000_000));
        assert!(matches!(gateway.decide(0, 0), Verdict::Admit(..)), "in minute {minute}");
    }
}

/// Only the last queue position can be returned.
#[test]
fn lost_race_takes_no_queue_position() {
    let text = "accepted: {headers: true}\nlimits: [{Url: /, rules: [
        {name: line, actor: all, unit: second, rpu: 1, algo: LB, max_delay: 9s, scope: gateway},
        {name: once, actor: account, unit: day, rpu: 1, algo: W, scope: gateway}]}]";
    let (gateway, verdicts) = overtaken(text, 2, 0);
    let admitted = verdicts.iter().filter(|verdict| !matches!(verdict, Verdict::Refuse(_)));
    assert_eq!(admitted.count(), 1);
    let Verdict::Hold(held) = gateway.decide(0, 1) else { panic!("somebody went before") };
    assert_eq!(held.until, START.mono + 1_000_000);
}

/// At any time, and after any earlier charges.
#[test]
fn request_that_lost_a_race_gets_the_later_refusal() {
    let rules = [
        "unit: minute, rpu: 1, algo: W",
        "unit: day, rpu: 1, algo: W",
        "unit: hour, rpu: 1, algo: TB",
        "unit: second, rpu: 1, algo: LB, max_queue: 0",
        "unit: day, rpu: 2, algo: W, count: {status: [401]}",
        "in_flight: 1",
        "in_flight: 2",
    ];
    let mut overtaken = 0;
    for first in rules {
        for second in rules.into_iter().filter(|second| *second != first) {
            let rule = |name: &str, rule: &str| {
                format!("{{name: {name}, actor: account, scope: gateway, {rule}}}")
            };
            let both = [rule("first", first), rule("second", second)].join(", ");
            let text = format!("limits: [{{Url: /, rules: [{both}]}}]");
            let report = |verdict: Verdict| match verdict {
                Verdict::Refuse(refusal) => (refusal.headers(), refusal.by.state()),
                other => panic!("{other:?} by {text}"),
            };
            let begun = || {
                let gateway = Rc::new(Gateway::new(text.clone(), 2));
                // From now on nearly all writes are charges.
                gateway.request(0, 1);
                gateway.request(1, 1);
                gateway
            };
            let after = begun();
            let _open = after.decide(1, 0);
            // Both have room for two.
            let expected = after.decide(0, 0);
            let Verdict::Refuse(_) = expected else { continue };
            let expected = report(expected);
            for time in 1..10 {
                let gateway = begun();
                let (own, other) = overtake(&gateway, time, 0);
                let Some(other) = other else { break };
                let (Verdict::Refuse(_), Verdict::Admit(..)) = (&own, &other) else { continue };
                overtaken += 1;
                assert_eq!(report(own), expected, "at the {time}th write by {text}");
                assert_eq!(report(gateway.decide(0, 0)), expected, "later by {text}");
                let lines = FakeMetrics::default();
                gateway.workers[0].borrow_mut().flush("test", &lines);
                let gave_up = lines.0.borrow().iter().any(|line| line.contains("exhausted"));
                assert!(!gave_up, "{:?}", lines.0);
            }
        }
    }
    assert!(overtaken > 50, "too tame: {overtaken}");
}

/// At each attempt another worker has taken the queue position, so the request is refused in the
/// end by that rule, regardless of the rules before it.
#[test]
fn repeatedly_lost_race_refuses_by_the_contended_rule() {
    let text = "limits: [{Url: /, rules: [
        {name: shy, actor: account, unit: minute, rpu: 9, algo: W, scope: local, shadow: true},
        {name: line, actor: all, unit: second, rpu: 1000, algo: LB, max_delay: 9s, scope: gateway}]}]";
    let gateway = Rc::new(Gateway::new(text.into(), 2));
    let here = Rc::downgrade(&gateway);
    *gateway.data.before_swap.borrow_mut() =
        Some(Box::new(move |_, _| here.upgrade().unwrap().request(1, 1)));
    let Verdict::Refuse(refusal) = gateway.decide(0, 0) else { panic!("there was no place") };
    assert!(refusal.by.state().contains("rule=line"), "{}", refusal.by.state());
    assert_eq!(refusal.headers().get("retry-after"), Some("1"));
    gateway.data.before_swap.borrow_mut().take();
    assert!(!matches!(gateway.decide(0, 0), Verdict::Refuse(_)));
}
