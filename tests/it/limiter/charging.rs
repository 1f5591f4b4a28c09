//! All rules are checked, then all are charged, and waits are correct.

use diana_limiter::{Limiter, Verdict};
use diana_policy::time::{Now, SECOND};
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use kit::store::gateway::START;
use std::rc::Rc;

use super::{from, limiter};

#[test]
fn request_without_a_rule_reads_no_clock() {
    struct Broken;
    impl diana_policy::port::Clock for Broken {
        fn now(&self) -> Now {
            panic!("nobody needs the time")
        }
    }
    let text = "limits: [{Url: /a, rules: [{actor: all, unit: day, rpu: 0}]}]";
    let mut limiter = limiter(text, Rc::new(FakeSharedData::default()));
    assert!(limiter.decide(&FakeRequest::get("/b"), 0, &Broken).is_pass());
}

/// A refusal may end earlier than reported if open requests of another worker use no permits, also
/// with a single rule.
#[test]
fn permits_of_another_worker_shorten_the_retry_delay() {
    let rule = "actor: account, unit: second, rpu: 10, algo: SW, cost: {header: x-cost, default: 1, max: 10}, \
                count: {status: [401]}";
    let yaml = format!("limits: [{{Url: /, rules: [{{{rule}}}]}}]");
    let (data, clock) = (Rc::<FakeSharedData>::default(), FakeClock::default());
    clock.0.set(START);
    let [mut one, mut other] = [(); 2].map(|()| limiter(&yaml, data.clone()));
    let takes = |cost: &str| from("ann").header("x-cost", cost);
    let mut open = Vec::new();
    for (tenth, cost) in [(0, "3"), (3, "4"), (5, "3")] {
        clock.0.set(START.later(tenth * SECOND / 10));
        match one.decide(&takes(cost), 0, &clock) {
            Verdict::Admit(permit, _) => open.push(permit),
            verdict => panic!("{verdict:?}"),
        }
    }
    let settle = |one: &mut Limiter, permit, status| {
        one.finish(permit, &FakeEnding::answered(status), clock.0.get());
    };
    let back = open.remove(1);
    open.into_iter().for_each(|permit| settle(&mut one, permit, 401));
    // By the used permits, five more fit when the first three expire. With reserved ones, when the
    // next four do.
    clock.0.set(START.later(11 * SECOND / 10 - SECOND / 100));
    assert!(matches!(other.decide(&takes("5"), 0, &clock), Verdict::Refuse(_)));
    settle(&mut one, back, 200);
    clock.0.set(START.later(11 * SECOND / 10 - 1));
    assert!(matches!(other.decide(&takes("5"), 0, &clock), Verdict::Refuse(_)));
    clock.0.set(START.later(11 * SECOND / 10 + SECOND / 50));
    assert!(matches!(other.decide(&takes("5"), 0, &clock), Verdict::Admit(..)));
}
