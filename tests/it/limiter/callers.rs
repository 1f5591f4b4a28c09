//! The callers of a rule.

use std::cell::Cell;

use diana_limiter::Verdict;
use diana_policy::port::Clock;
use diana_policy::time::Now;
use kit::fake::{FakeClock, FakeRequest};

use super::{Gate, from};

/// A device header with the text of an address is not the caller with that address.
#[test]
fn equal_values_of_two_sources_are_two_callers() {
    let mut gate =
        Gate::new("{Url: /, rules: [{actor: device, unit: hour, rpu: 1, scope: local}]}");
    let spelled = FakeRequest::get("/").header("x-device-id", [192, 0, 2, 1]);
    assert!(gate.admits(&spelled));
    assert!(gate.admits(&FakeRequest::get("/").from("192.0.2.1:1")));
    assert!(!gate.admits(&FakeRequest::get("/").from("192.0.2.1:2")));
}

#[test]
fn enforce_selects_a_share_of_callers() {
    let yaml = |percent: u8| {
        format!(
            "{{Url: /, rules: [{{actor: account, unit: day, rpu: 1, enforce: {percent}, scope: local}}]}}"
        )
    };
    let enforced = |percent: u8| -> Vec<usize> {
        let mut gate = Gate::new(&yaml(percent));
        let caller = |number: usize| from(&format!("caller-{number}"));
        (0..2000).for_each(|number| assert!(gate.admits(&caller(number))));
        (0..2000).filter(|&number| !gate.admits(&caller(number))).collect()
    };
    assert_eq!(enforced(0).len(), 0);
    assert_eq!(enforced(100).len(), 2000);
    let (some, more) = (enforced(10), enforced(40));
    assert!((140..260).contains(&some.len()), "{}", some.len());
    assert!(some.iter().all(|caller| more.contains(caller)), "a larger share holds the smaller");
}

/// Counts its reads.
struct Reads(Cell<u64>, FakeClock);

impl Clock for Reads {
    fn now(&self) -> Now {
        self.0.set(self.0.get() + 1);
        self.1.now()
    }
}

/// For any decision, the caller is determined once.
#[test]
fn caller_of_a_refused_request_is_read_once() {
    for absent in ["share", "deny"] {
        let mut gate = Gate::new(&format!(
            "limits: [{{Url: /, rules: [{{name: r, actor: who, unit: hour, rpu: 1, absent: {absent}, \
               scope: local}}]}}]
actors: {{who: [{{metadata: [ns, who]}}]}}"
        ));
        let reads = Reads(Cell::default(), FakeClock::default());
        reads.1.0.set(gate.clock.0.get());
        let verdicts = [0, 1].map(|_| gate.limiter.decide(&FakeRequest::get("/"), 0, &reads));
        assert!(matches!(verdicts[1], Verdict::Refuse(_)), "{absent}");
        assert_eq!(reads.0.get(), 2, "{absent}");
        let metrics = gate.metrics();
        assert!(metrics.contains(&"diana.ns.metadata_missing 2".into()), "{absent} {metrics:?}");
    }
}
