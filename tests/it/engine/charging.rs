//! All rules are judged, then all are charged, and waits are true.

use diana_core::engine::Engine;
use diana_core::key::Seed;
use diana_core::time::{Now, SECOND};
use diana_core::verdict::Verdict;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use kit::store::gateway::START;
use kit::told::Told;
use std::cell::RefCell;
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

/// A refusal ends sooner where requests of another worker turn out to use nothing of what delays it, also where no other rule
/// has a say.
#[test]
fn what_comes_back_in_another_worker_is_there_a_moment_later() {
    let rule = "actor: account, unit: second, rpu: 10, burst: 10, algo: TB, cost: {header: x-cost, default: 1, max: 10}, \
                count: {status: [401]}";
    let yaml = format!("limits: [{{Url: /, rules: [{{{rule}}}]}}]");
    let (data, clock) = (Rc::<FakeSharedData>::default(), FakeClock::default());
    clock.0.set(START);
    let [mut one, mut other] = [(); 2].map(|()| {
        let policy = diana_config::parse(yaml.as_bytes()).unwrap_or_else(|all| panic!("{all}"));
        Engine::alone(policy, Seed { k0: 7, k1: 9 }, data.clone()).unwrap()
    });
    let takes = |cost: &str| from("ann").header("x-cost", cost);
    let mut open = Vec::new();
    for cost in ["6", "4"] {
        match one.decide(&takes(cost), &clock) {
            Verdict::Admit(permit, _) => open.push(permit),
            verdict => panic!("{verdict:?}"),
        }
    }
    for (permit, status) in open.into_iter().zip([401, 200]) {
        if status == 200 {
            // Five more fit in a tenth of a second by what was used, and in half a second by what is reserved, too.
            assert!(matches!(other.decide(&takes("5"), &clock), Verdict::Refuse(_)));
        }
        one.settle(permit, &FakeEnding::answered(status), clock.0.get());
    }
    clock.0.set(START.later(SECOND / 10 - 1));
    assert!(matches!(other.decide(&takes("5"), &clock), Verdict::Refuse(_)));
    clock.0.set(START.later(SECOND / 10 + SECOND / 50));
    assert!(matches!(other.decide(&takes("5"), &clock), Verdict::Admit(..)));
}

/// Another worker's request is charged by one rule until the other one has refused it. Who is refused for that is heard again
/// soon.
#[test]
fn what_another_rule_has_taken_back_is_there_a_moment_later() {
    let rule = |actor: &str| format!("{{actor: {actor}, unit: day, rpu: 1, algo: W}}");
    let yaml = format!("limits: [{{Url: /, rules: [{}, {}]}}]", rule("account"), rule("device"));
    let (data, clock) = (Rc::<FakeSharedData>::default(), Rc::new(FakeClock::default()));
    clock.0.set(START);
    let [mut one, other, mut third] = [(); 3].map(|()| {
        let policy = diana_config::parse(yaml.as_bytes()).unwrap();
        Engine::alone(policy, Seed { k0: 7, k1: 9 }, data.clone()).unwrap()
    });
    let by = |account, device| from(account).header("x-device-id", device);
    let is_admitted = |verdict| matches!(verdict, Verdict::Admit(..));
    // All of them know how many slots there are.
    let other = Rc::new(RefCell::new(other));
    for (engine, name) in [(&mut one, "d"), (&mut other.borrow_mut(), "e"), (&mut third, "f")] {
        assert!(is_admitted(engine.decide(&by(name, name), &*clock)));
    }
    let (theirs, at, mut slots) = (other.clone(), clock.clone(), Vec::<String>::new());
    *data.before_swap.borrow_mut() = Some(Box::new(move |_, key| {
        if slots.iter().all(|slot| slot != key) {
            slots.push(key.into());
            if slots.len() == 2 {
                // The account is charged. The device is taken by somebody else.
                assert!(matches!(third.decide(&by("bob", "phone"), &*at), Verdict::Admit(..)));
                let refused = theirs.borrow_mut().decide(&by("ann", "tablet"), &*at);
                assert!(matches!(refused, Verdict::Refuse(_)));
            }
        }
    }));
    assert!(!is_admitted(one.decide(&by("ann", "phone"), &*clock)));
    data.before_swap.borrow_mut().take();
    clock.0.set(START.later(SECOND / 50));
    assert!(is_admitted(other.borrow_mut().decide(&by("ann", "tablet"), &*clock)));
}

/// What a rule leaves to whom it refuses whatever it asks.
#[test]
fn who_is_denied_has_nothing_left() {
    let rule = "actor: account, unit: day, rpu: 9, algo: W, scope: local, absent: deny";
    let mut gate = Gate::new(&format!("limits: [{{Url: /, rules: [{{{rule}}}]}}]"));
    assert_eq!(gate.refusal(&FakeRequest::get("/")).by.remaining, Some(0));
}
