//! Charges for later use: leased permits, and queue positions.

use std::sync::Arc;

use diana_algorithm::{Algorithm, REGISTRY};
use diana_policy::Quota;
use diana_policy::decision::Decision;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now, SECOND, Unit};

const MS: Micros = 1000;

fn at(mono: Micros) -> Now {
    Now { mono, wall: 1_700_000_040_000_000 + mono }
}

/// A caller of one rule.
struct Caller {
    algorithm: Arc<dyn Algorithm>,
    state: Vec<u64>,
}

impl Caller {
    fn new(short: &str, quota: Quota) -> Caller {
        let entry = REGISTRY.iter().find(|entry| entry.short == short).unwrap();
        let algorithm = (entry.build)(&quota).unwrap();
        Caller { state: vec![0; algorithm.properties().words], algorithm }
    }

    /// A request of `cost` that leaves `delay` after `now` or later.
    fn reserve(&mut self, now: Micros, delay: Micros, cost: u64) -> Decision {
        let mut new = self.state.clone();
        let decision = self.algorithm.step(&self.state, at(now), delay, cost, &mut new);
        self.state = new;
        decision
    }

    fn refund(&mut self, receipt: u64, permits: u64) {
        let old = self.state.clone();
        let refund = Settlement::refund(receipt, permits);
        self.algorithm.settle(&old, at(0), &refund, &mut self.state);
    }

    fn hold_back(&mut self, out: u64, now: Micros) {
        let old = self.state.clone();
        self.algorithm.hold_back(&old, out, now, &mut self.state);
    }

    fn receipt(&self) -> u64 {
        self.algorithm.receipt(&self.state)
    }

    fn remaining(&self, now: Micros) -> u64 {
        self.algorithm.balance(&self.state, at(now)).remaining
    }

    fn spend_by(&self, now: Micros) -> Option<Micros> {
        self.algorithm.spend_by(&self.state, at(now))
    }
}

#[test]
fn lease_of_a_sliding_window_ends_with_its_slice() {
    let mut caller = Caller::new("SW", Quota::new(Unit::Second, 10));
    assert!(caller.reserve(0, 0, 10).is_admitted());
    // Spent at 0.95 s, they would expire at 1.1 s, and twenty requests would pass within 0.15 s.
    assert_eq!(caller.spend_by(0), Some(100 * MS));
    assert_eq!(caller.remaining(1100 * MS), 10);
}

#[test]
fn lease_of_a_window_ends_with_its_window() {
    let mut caller = Caller::new("W", Quota::new(Unit::Second, 10));
    assert!(caller.reserve(250 * MS, 0, 8).is_admitted());
    let receipt = caller.receipt();
    assert_eq!(caller.spend_by(250 * MS), Some(SECOND));
    assert!(caller.reserve(SECOND, 0, 8).is_admitted());
    caller.refund(receipt, 5);
    assert_eq!(caller.remaining(SECOND), 2);
    caller.refund(caller.receipt(), 5);
    assert_eq!(caller.remaining(SECOND), 7);
}

#[test]
fn bucket_does_not_refill_outstanding_tokens() {
    let mut caller = Caller::new("TB", Quota::new(Unit::Second, 10));
    assert_eq!(caller.algorithm.properties().most_out, 5);
    assert!(caller.reserve(0, 0, 5).is_admitted());
    // After an idle minute five are still outstanding: a burst gets five here, and those five
    // elsewhere.
    caller.hold_back(5, 60 * SECOND);
    assert_eq!(caller.remaining(60 * SECOND), 5);
    caller.refund(caller.receipt(), 5);
    assert_eq!(caller.remaining(60 * SECOND), 10);
}

#[test]
fn token_bucket_with_max_delay_holds_requests() {
    let quota = Quota {
        burst: Some(2),
        max_delay: Some(250 * MS),
        max_queue: Some(10),
        ..Quota::new(Unit::Second, 10)
    };
    let mut caller = Caller::new("TB", quota);
    let waits = [0, 0, 100 * MS, 200 * MS].map(|wait| Decision::Admit { wait });
    assert_eq!([0; 4].map(|now| caller.reserve(now, 0, 1)), waits);
    // The next permit is added at 0.3 s, so 50 ms from now the delay is short enough.
    assert_eq!(caller.reserve(0, 0, 1), Decision::retry(50 * MS));
    assert_eq!(caller.spend_by(0), None);
    let mut caller = Caller::new("TB", Quota { max_queue: Some(1), ..quota });
    let decisions = [0; 4].map(|now| caller.reserve(now, 0, 1));
    assert_eq!(decisions, [waits[0], waits[1], waits[2], Decision::retry(100 * MS)]);
}

#[test]
fn token_taken_for_later_is_unavailable_before() {
    let quota = Quota { burst: Some(2), max_delay: Some(SECOND), ..Quota::new(Unit::Second, 10) };
    let mut caller = Caller::new("TB", quota);
    assert_eq!(caller.reserve(0, 500 * MS, 1), Decision::Admit { wait: 500 * MS });
    // Two at once at 0.5 s in addition to the one above would exceed the bound.
    assert_eq!(caller.reserve(500 * MS, 0, 1), Decision::NOW);
    assert_eq!(caller.reserve(500 * MS, 0, 1), Decision::Admit { wait: 100 * MS });
    // One second is the maximum wait, regardless of the bucket.
    assert_eq!(caller.reserve(60 * SECOND, SECOND + 7, 1), Decision::retry(7));
}

#[test]
fn queue_position_is_the_instant_of_leaving() {
    let mut caller = Caller::new("LB", Quota::new(Unit::Second, 10));
    assert_eq!(caller.reserve(0, 350 * MS, 1), Decision::Admit { wait: 350 * MS });
    assert_eq!(caller.reserve(0, 0, 1), Decision::Admit { wait: 450 * MS });
    assert_eq!(caller.reserve(0, 500 * MS, 1), Decision::Admit { wait: 550 * MS });
    // One second is the maximum wait.
    assert_eq!(caller.reserve(0, SECOND + 7, 1), Decision::retry(7));
    assert_eq!(caller.reserve(0, SECOND, 1), Decision::Admit { wait: SECOND });
    assert_eq!(caller.reserve(SECOND, 0, 1), Decision::Admit { wait: 100 * MS });
}

#[test]
fn only_the_last_queue_position_can_be_returned() {
    let mut caller = Caller::new("LB", Quota::new(Unit::Second, 10));
    assert_eq!(caller.spend_by(0), None);
    caller.reserve(0, 0, 1);
    let first = caller.receipt();
    caller.reserve(0, 0, 1);
    let second = caller.receipt();
    caller.refund(first, 1);
    assert_eq!(caller.receipt(), second);
    caller.refund(second, 1);
    assert_eq!(caller.reserve(0, 0, 1), Decision::Admit { wait: 100 * MS });
}
