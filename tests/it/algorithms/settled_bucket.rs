//! Token buckets of rules that settle: what nobody used leaves no trace, and what somebody used drains from when it
//! was reserved.

use std::rc::Rc;

use diana_core::algorithm::{Algorithm, keeping_used};
use diana_core::policy::Quota;
use diana_core::settlement::Settlement;
use diana_core::time::{Now, SECOND, Unit};
use fastrand::Rng;
use kit::seed;
use kit::store::gateway::START;
use kit::store::rule::Rule;

const LIMIT: u64 = 10;

/// One caller's bucket.
struct Bucket {
    algorithm: Rc<dyn Algorithm>,
    state: Vec<u64>,
}

/// A charge that is open.
struct Open {
    receipt: u64,
    since: Now,
    reserved: u64,
}

impl Bucket {
    fn new(unit: Unit) -> Bucket {
        let Rule { entry, quota, algorithm, .. } = Rule::new("TB", Quota::new(unit, LIMIT));
        let algorithm = keeping_used(entry, &quota, algorithm);
        Bucket { state: vec![0; algorithm.words()], algorithm }
    }

    fn reserve(&mut self, reserved: u64, since: Now) -> Option<Open> {
        let old = self.state.clone();
        let decision = self.algorithm.step(&old, since, reserved, &mut self.state);
        let receipt = self.algorithm.receipt(&self.state);
        decision.is_admitted().then_some(Open { receipt, since, reserved })
    }

    fn settle(&mut self, open: &Open, used: u64, now: Now) {
        let Open { receipt, since, reserved } = *open;
        let settlement = Settlement { receipt, since: since.mono, reserved, used };
        let old = self.state.clone();
        self.algorithm.settle(&old, now, &settlement, &mut self.state);
    }

    fn left(&self, now: Now) -> u64 {
        self.algorithm.remaining(&self.state, now)
    }
}

/// However many were open at once, for however long, and whenever others came and went.
#[test]
fn what_nobody_used_leaves_no_trace() {
    let mut rng = Rng::with_seed(seed::next());
    for unit in [Unit::Second, Unit::Minute, Unit::Day].repeat(100) {
        let (mut bucket, mut now, mut open) = (Bucket::new(unit), START, Vec::new());
        for _ in 0..200 {
            now = now.later(rng.u64(..SECOND / 2));
            match rng.u8(..3) {
                0 if !open.is_empty() => {
                    let one = open.swap_remove(rng.usize(..open.len()));
                    match rng.bool() {
                        true => bucket.settle(&one, 0, now),
                        false => {
                            let old = bucket.state.clone();
                            let Open { receipt, reserved, .. } = one;
                            bucket.algorithm.refund(&old, receipt, reserved, &mut bucket.state);
                        }
                    }
                }
                _ => open.extend(bucket.reserve(rng.u64(1..4), now)),
            }
            let held: u64 = open.iter().map(|open| open.reserved).sum();
            assert!(bucket.left(now) >= LIMIT.saturating_sub(held), "{held} were held");
        }
        open.iter().for_each(|open| bucket.settle(open, 0, now));
        assert!(bucket.reserve(LIMIT, now).is_some(), "by the {unit:?}");
        assert!(bucket.reserve(1, now).is_none());
    }
}

/// A stream that lasts for long and uses what it reserved takes no more than it would have at once.
#[test]
fn long_streams_that_use_what_they_reserve_come_as_often_as_short_ones() {
    let (mut bucket, mut open, mut admitted) = (Bucket::new(Unit::Second), Vec::new(), 0);
    for tick in 0..2000 {
        let now = START.later(tick * SECOND / 100);
        let (past, rest): (Vec<Open>, Vec<Open>) =
            open.into_iter().partition(|open: &Open| open.since.mono + 5 * SECOND <= now.mono);
        past.iter().for_each(|open| bucket.settle(open, open.reserved, now));
        open = rest;
        if let Some(one) = bucket.reserve(1, now) {
            open.push(one);
            admitted += 1;
        }
    }
    assert_eq!(admitted, LIMIT + 199, "in 20 seconds");
}

/// Somebody who is never settled, as when a worker was lost, drains like everybody else.
#[test]
fn what_is_never_settled_keeps_nobody_out_for_good() {
    let mut bucket = Bucket::new(Unit::Second);
    let lost = bucket.reserve(6, START).unwrap();
    let (early, later) = (START.later(SECOND / 2), START.later(SECOND));
    bucket.reserve(4, early).unwrap();
    let now = later.later(SECOND);
    assert_eq!(bucket.left(now), LIMIT);
    let one = bucket.reserve(8, now).unwrap();
    // What is said of it now is of a debt that is gone: nothing comes back, and only what is beyond it is owed.
    bucket.settle(&lost, 0, now);
    assert_eq!(bucket.left(now), 2);
    bucket.settle(&lost, 7, now);
    assert_eq!(bucket.left(now), 1);
    bucket.settle(&one, 0, now);
    assert_eq!(bucket.left(now), 9, "as nothing else was open");
}
