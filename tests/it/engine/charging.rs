//! All rules are judged, then all are charged, and waits are true.

use diana_core::engine::Engine;
use diana_core::key::Seed;
use diana_core::time::Now;
use diana_core::verdict::Verdict;
use kit::fake::{FakeRequest, FakeSharedData};
use std::rc::Rc;

use super::{Gate, field, from};

#[test]
fn all_rules_are_judged_and_then_all_charged() {
    let mut gate = Gate::new(
        "limits:
          - Url: /sample
            rules: [{name: inner, actor: account, unit: minute, rpu: 1, algo: W, scope: local}]
          - Url: /
            rules: [{name: outer, actor: all, unit: minute, rpu: 3, algo: W, scope: local}]",
    );
    assert!(gate.admits(&from("ann")));
    for _ in 0..5 {
        let refusal = gate.refusal(&from("ann"));
        assert!(refusal.by.state().contains("rule=inner"), "{}", refusal.by.state());
        // What `inner` refused, `outer` was not charged for.
        assert_eq!(
            field(&refusal.headers(), "ratelimit").unwrap(),
            r#""outer";r=2;t=60, "inner";r=0;t=60"#
        );
    }
    assert!(gate.admits(&from("bob")));
    assert!(gate.admits(&FakeRequest::get("/other")));
    // Now the outer rule, which is judged first, refuses, and it alone is named.
    let refusal = gate.refusal(&from("cid"));
    assert!(refusal.by.state().contains("rule=outer"), "{}", refusal.by.state());
    assert_eq!(
        gate.metrics(),
        [
            "diana.ns.rule.inner.allowed 2",
            "diana.ns.rule.inner.keys +2",
            "diana.ns.rule.inner.refused 5",
            "diana.ns.rule.outer.allowed 3",
            "diana.ns.rule.outer.keys +1",
            "diana.ns.rule.outer.refused 1",
        ]
    );
    assert_eq!(gate.metrics(), Vec::<String>::new());
}

#[test]
fn the_longest_wait_among_those_that_refuse_counts() {
    let mut gate = Gate::new(
        "limits:
          - Url: /
            rules:
              - {name: short, actor: all, unit: second, rpu: 1, algo: W, scope: local}
              - {name: long, actor: all, unit: hour, rpu: 1, algo: TB, scope: local}",
    );
    assert!(gate.admits(&from("ann")));
    let refusal = gate.refusal(&from("ann"));
    assert!(refusal.by.state().starts_with("refused rule=short"), "{}", refusal.by.state());
    assert_eq!(field(&refusal.headers(), "retry-after"), Some("3600"));
    assert_eq!(field(&refusal.headers(), "x-envoy-ratelimited"), Some("true"));
    assert_eq!(
        field(&refusal.headers(), "ratelimit-policy"),
        Some(r#""short";q=1;w=1, "long";q=1;w=3600"#)
    );
    gate.wait(3_600_000_000 - 1);
    assert_eq!(field(&gate.refusal(&from("ann")).headers(), "retry-after"), Some("1"));
    gate.wait(1);
    assert!(gate.admits(&from("ann")));
}

#[test]
fn zero_refuses_all_without_a_time_to_come_back() {
    let mut gate = Gate::new("{Url: /, rules: [{actor: all, unit: day, rpu: 0, scope: local}]}");
    let refusal = gate.refusal(&from("ann"));
    assert_eq!(field(&refusal.headers(), "retry-after"), None);
    assert!(refusal.by.state().contains("wait=never"), "{}", refusal.by.state());
}

#[test]
fn no_rule_no_clock() {
    struct Broken;
    impl diana_core::port::Clock for Broken {
        fn now(&self) -> Now {
            panic!("nobody needs the time")
        }
    }
    let policy =
        diana_config::parse(b"limits: [{Url: /a, rules: [{actor: all, unit: day, rpu: 0}]}]");
    let mut engine =
        Engine::alone(policy.unwrap(), Seed { k0: 0, k1: 0 }, Rc::new(FakeSharedData::default()))
            .unwrap();
    assert!(engine.decide(&FakeRequest::get("/b"), &Broken).is_pass());
}

#[test]
fn a_refusal_names_the_instant_at_which_it_ends() {
    let rules = [
        "unit: minute, rpu: 60, cost: 2, algo: LB",
        "unit: minute, rpu: 60, cost: 30, algo: LB",
        "unit: second, rpu: 3, algo: LB, max_queue: 0",
        "unit: second, rpu: 7, cost: 2, algo: TB",
        "unit: second, rpu: 7, cost: 3, algo: SW",
        "unit: second, rpu: 7, cost: 3, algo: W",
    ];
    for rule in rules {
        let yaml = format!("{{Url: /, rules: [{{actor: all, scope: local, {rule}}}]}}");
        let mut gate = Gate::new(&yaml);
        for step in [0, 50_000, 0, 1, 0] {
            gate.wait(step);
            let Verdict::Refuse(refusal) = gate.decide(&from("ann")) else { continue };
            let state = refusal.by.state();
            let wait = state.split("wait=").nth(1).unwrap().split('s').next().unwrap();
            let wait: u64 = wait.replace('.', "").parse().unwrap();
            gate.wait(wait - 1);
            assert!(!gate.admits(&from("ann")), "{rule}: {wait} is too long");
            gate.wait(1);
            assert!(gate.admits(&from("ann")), "{rule}: {wait} is too short");
        }
    }
}
