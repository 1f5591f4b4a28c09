//! Leaky bucket: slots exactly `unit / rpu` apart; a request that comes early waits for its slot.
//!
//! A request whose slot lies more than `max_queue` intervals or one second ahead is refused at
//! once. The wait that the source document derives from a count of blocked threads follows here
//! from the debt alone, so nothing leaks when a waiting request disappears.

use std::rc::Rc;

use super::debt::{self, Debt};
use super::{Algorithm, Built, Conflict, Entry, Key};
use crate::decision::Decision;
use crate::quota::{MAX_PERMITS, Quota};
use crate::time::{Micros, Now, SECOND};

/// The longest wait for a slot.
const MAX_DELAY: Micros = SECOND;

/// `LB` in the registry.
pub const ENTRY: Entry = Entry {
    short: "LB",
    long: "leaky bucket",
    keys: &[Key { name: "max_queue", min: 0, max: MAX_PERMITS }],
    build,
};

#[derive(Debug)]
struct LeakyBucket {
    rpu: u64,
    unit: Micros,
    /// The largest debt in front of a request that is still given a slot.
    capacity: u128,
}

fn build(quota: &Quota) -> Built {
    let unit = quota.period();
    let mut conflicts = Vec::new();
    if quota.rpu > 0 {
        if quota.cost > quota.rpu {
            conflicts.push(Conflict::cost_above_rpu(quota));
        }
        if u128::from(unit) > u128::from(MAX_DELAY) * u128::from(quota.rpu) {
            let least = unit.div_ceil(MAX_DELAY);
            let message = format!(
                "found `{}`: slots would be further apart than the longest wait, 1 s, so no request \
                 could ever wait for one; allowed: at least {least} per {}, or `algo: TB` with \
                 `burst: 1`, which refuses early requests",
                quota.rpu,
                quota.unit.name()
            );
            conflicts.push(Conflict { key: "rpu", message });
        }
    }
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let queue = u128::from(quota.max_queue.unwrap_or(quota.rpu)) * u128::from(unit);
    let delay = u128::from(MAX_DELAY) * u128::from(quota.rpu);
    Ok(Rc::new(LeakyBucket { rpu: quota.rpu, unit, capacity: queue.min(delay) }))
}

impl Algorithm for LeakyBucket {
    fn words(&self) -> usize {
        debt::WORDS
    }

    fn step(&self, old: &[u64], now: Now, cost: u64, new: &mut [u64]) -> Decision {
        if self.rpu == 0 {
            return Decision::NEVER;
        }
        let ahead = Debt::load(old).drained(now.mono, self.rpu);
        match ahead.wait(self.capacity, now.mono, self.rpu) {
            0 => {
                ahead.charged(cost, self.unit).save(new);
                Decision::Admit { wait: ahead.wait(0, now.mono, self.rpu) }
            }
            wait => Decision::retry(wait),
        }
    }

    fn remaining(&self, state: &[u64], now: Now) -> u64 {
        u64::from(self.rpu > 0 && Debt::load(state).drained(now.mono, self.rpu).amount() == 0)
    }

    fn expires(&self, state: &[u64], _now: Now) -> Micros {
        Debt::load(state).cleared(self.rpu)
    }

    fn policy(&self) -> (u64, Micros) {
        (self.rpu, self.unit)
    }
}
