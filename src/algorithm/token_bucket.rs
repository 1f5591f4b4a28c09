//! Token bucket: `burst` tokens at the start, refilled at `rpu` per unit.
//!
//! In any `t` it admits at most `burst + rpu · t / unit`, and a request that fits is never refused.

use std::rc::Rc;

use super::debt::{self, Debt};
use super::{Algorithm, Built, Conflict, Entry, Key};
use crate::decision::Decision;
use crate::quota::{MAX_PERMITS, Quota};
use crate::time::{Micros, Now};

/// `TB` in the registry.
pub const ENTRY: Entry = Entry {
    short: "TB",
    long: "token bucket",
    keys: &[Key { name: "burst", min: 1, max: MAX_PERMITS }],
    build,
};

#[derive(Debug)]
struct TokenBucket {
    rpu: u64,
    unit: Micros,
    burst: u64,
    /// The largest debt: `burst` permits.
    capacity: u128,
}

fn build(quota: &Quota) -> Built {
    let mut conflicts = Vec::new();
    if quota.rpu == 0 && quota.burst.is_some() {
        let message = "means nothing beside `rpu: 0`, which refuses everything".into();
        conflicts.push(Conflict { key: "burst", message });
    }
    let burst = if quota.rpu == 0 { 0 } else { quota.burst.unwrap_or(quota.rpu) };
    if quota.cost > burst && quota.rpu > 0 {
        let name = if quota.burst.is_some() { "burst" } else { "rpu" };
        let message =
            format!("found `{}`, which never fits; allowed: at most `{name}`, {burst}", quota.cost);
        conflicts.push(Conflict { key: "cost", message });
    }
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let unit = quota.period();
    let capacity = u128::from(burst) * u128::from(unit);
    Ok(Rc::new(TokenBucket { rpu: quota.rpu, unit, burst, capacity }))
}

impl Algorithm for TokenBucket {
    fn words(&self) -> usize {
        debt::WORDS
    }

    fn step(&self, old: &[u64], now: Now, cost: u64, new: &mut [u64]) -> Decision {
        if cost > self.burst {
            return Decision::NEVER;
        }
        let debt = Debt::load(old).drained(now.mono, self.rpu).charged(cost, self.unit);
        match debt.wait(self.capacity, now.mono, self.rpu) {
            0 => {
                debt.save(new);
                Decision::NOW
            }
            wait => Decision::retry(wait),
        }
    }

    fn remaining(&self, state: &[u64], now: Now) -> u64 {
        let owed = Debt::load(state).drained(now.mono, self.rpu).amount();
        let left = self.capacity.saturating_sub(owed) / u128::from(self.unit);
        u64::try_from(left).unwrap_or(u64::MAX)
    }

    fn expires(&self, state: &[u64], _now: Now) -> Micros {
        Debt::load(state).cleared(self.rpu)
    }

    fn policy(&self) -> (u64, Micros) {
        let window = self.capacity.div_ceil(u128::from(self.rpu.max(1)));
        (self.burst, Micros::try_from(window).unwrap_or(Micros::MAX).max(1))
    }
}
