//! The bucket of TB, LB and `warm_up`.
//!
//! A leaky bucket is a token bucket with room for a single request of any cost. In both, a request
//! may wait for its turn, and `warm_up` increases charges after idle time.

use std::sync::Arc;

use super::debt::{self, Debt, product};
use super::warm_up::{self, WarmUp};
use super::{Algorithm, Balance, Conflict, Properties, UsageReport, only};
use diana_policy::decision::Decision;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};
use diana_policy::{MAX_DRAINED, MAX_PERMITS, Quota};

#[derive(Debug)]
struct Bucket {
    properties: Properties,
    rpu: u64,
    lasting: u64,
    /// The highest rate at which a charge may have drained.
    fastest: u64,
    unit: Micros,
    /// Permits in a full bucket. `None` if a request takes all of it, whatever its cost.
    burst: Option<u64>,
    /// The largest debt after a charge without a wait: `burst` permits. 0 without `burst`.
    capacity: u128,
    /// The maximum distance of a request's turn, in permits times ticks. `None` if no request
    /// waits: then requests count when they are decided.
    reach: Option<u128>,
    warm_up: WarmUp,
    /// True if permits may be leased: no request waits, and no charge depends on the previous one.
    leases: bool,
}

/// Invalid combinations of a bucket.
pub(super) fn conflicts(quota: &Quota) -> Vec<Conflict> {
    let mut conflicts = warm_up::conflicts(quota);
    if quota.rpu > MAX_DRAINED {
        let message = format!(
            "found `{}`, allowed: 0 … {MAX_DRAINED}, or up to {MAX_PERMITS} with `algo: W` or `SW`",
            quota.rpu
        );
        conflicts.push(Conflict { key: "rpu", with: &["algo"], message });
    }
    conflicts
}

/// Builds a bucket of `burst` permits, or of a single request, in which the turn of a request is at
/// most `reach` ahead.
pub(super) fn build(quota: &Quota, burst: Option<u64>, reach: Option<u128>) -> Arc<dyn Algorithm> {
    let (rpu, unit, warm_up) = (quota.rpu, quota.period(), WarmUp::of(quota));
    let capacity = product(burst.unwrap_or(0), unit);
    let (limit, window) = match burst {
        Some(burst) if rpu > 0 => (burst, debt::ticks(capacity, rpu)),
        _ => (rpu, unit),
    };
    let most_at_once = burst.unwrap_or(u64::MAX);
    let plain = Properties::new(debt::WORDS + warm_up.words(), limit, window);
    Arc::new(Bucket {
        properties: Properties {
            most_at_once,
            most_out: most_at_once / 2,
            longest_delay: reach.map_or(Micros::MAX, |reach| debt::whole_ticks(reach, rpu)),
            ..plain
        },
        rpu,
        lasting: quota.lasting(),
        fastest: quota.fastest(),
        unit,
        burst,
        capacity,
        reach,
        warm_up,
        leases: reach.is_none() && quota.warm_up.is_none(),
    })
}

/// The state of a caller. The debt lasts until the bucket is full again or, without `burst`, until
/// the next free slot.
#[derive(Debug, Clone, Copy)]
struct BucketState {
    debt: Debt,
    /// With `warm_up`: the permits missing in the store.
    missing: u64,
}

impl BucketState {
    fn load(state: &[u64]) -> BucketState {
        let (debt, missing) = state.split_at_checked(debt::WORDS).unwrap_or_default();
        BucketState { debt: Debt::load(debt), missing: missing.first().copied().unwrap_or(0) }
    }

    fn save(self, state: &mut [u64]) {
        if let Some((debt, missing)) = state.split_at_mut_checked(debt::WORDS) {
            self.debt.save(debt);
            missing.fill(self.missing);
        }
    }
}

impl Bucket {
    fn debt(&self, state: &[u64], now: Micros) -> Debt {
        BucketState::load(state).debt.drained(now, self.rpu)
    }

    /// Decides about a request that may have to wait for its turn.
    fn queue(&self, old: &[u64], now: Now, delay: Micros, cost: u64, new: &mut [u64]) -> Decision {
        if cost > self.properties.most_at_once {
            return Decision::NEVER;
        }
        let leaves = now.mono.saturating_add(delay);
        let amount = product(cost, self.unit);
        let capacity = if self.burst.is_some() { self.capacity } else { amount };
        let old = BucketState::load(old);
        let debt = old.debt.drained(now.mono, self.rpu);
        let turn = debt.with(amount).without(capacity).until(leaves, self.rpu);
        match turn.wait(self.reach.unwrap_or(0), now.mono, self.rpu) {
            0 => {
                let idle = old.debt.idle(leaves, self.rpu);
                let (extra, missing) = self.warm_up.take(amount, old.missing, idle);
                let debt = debt.until(leaves, self.rpu).with(amount + extra);
                BucketState { debt, missing }.save(new);
                Decision::Admit { wait: turn.wait(0, now.mono, self.rpu) }
            }
            wait => Decision::retry(wait),
        }
    }
}

impl Algorithm for Bucket {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn step(&self, old: &[u64], now: Now, delay: Micros, cost: u64, new: &mut [u64]) -> Decision {
        let delay = if self.reach.is_some() { delay } else { 0 };
        // Most requests of a token bucket find their permits, and do not need the queue. Without
        // `burst` all do: the capacity is 0, and every request has a cost.
        if delay == 0 {
            let debt = Debt::load(old).drained(now.mono, self.rpu).charged(cost, self.unit);
            if debt.amount() <= self.capacity {
                debt.save(new);
                return Decision::NOW;
            }
        }
        self.queue(old, now, delay, cost, new)
    }

    fn receipt(&self, charged: &[u64]) -> u64 {
        if self.leases { 0 } else { BucketState::load(charged).debt.end(self.rpu) }
    }

    fn settle(&self, old: &[u64], now: Now, settlement: &Settlement, new: &mut [u64]) {
        let BucketState { debt, missing } = BucketState::load(old);
        if self.leases {
            let settled = match settlement.debt() {
                0 => debt.returned(settlement.back(), self.unit, settlement.since, self.fastest),
                permits => debt.drained(now.mono, self.rpu).charged(permits, self.unit),
            };
            return BucketState { debt: settled, missing }.save(new);
        }
        // Later requests have their turns already, so only the last turn comes back: an earlier one
        // passes unused.
        let is_last = self.receipt(old) == settlement.receipt;
        let back = if is_last { settlement.back() } else { 0 };
        let amount = product(back, self.unit);
        let (extra, missing) = self.warm_up.put_back(amount, missing);
        BucketState { debt: debt.without(amount + extra), missing }.save(new);
    }

    fn spend_by(&self, _charged: &[u64], _now: Now) -> Option<Micros> {
        self.leases.then_some(Micros::MAX)
    }

    fn hold_back(&self, old: &[u64], out: u64, at: Micros, new: &mut [u64]) {
        let debt = self.debt(old, at).at_least(product(out, self.unit));
        BucketState { debt, ..BucketState::load(old) }.save(new);
    }

    fn learn(&self, old: &[u64], report: &UsageReport, new: &mut [u64]) {
        let UsageReport { at, charged, ends, more } = *report;
        let whole = product(charged, self.unit);
        // The authority counts in whole permits, but its bucket drains by parts of them.
        let amount = if self.lasting > 0 { whole.min(product(ends, self.lasting)) } else { whole };
        let debt = Debt::at(at.mono).with(amount).charged(more, self.unit);
        BucketState { debt, ..BucketState::load(old) }.save(new);
    }

    fn balance(&self, state: &[u64], now: Now) -> Balance {
        let debt = self.debt(state, now.mono);
        let owed = debt.amount();
        if self.burst.is_none() {
            let is_free = owed == 0;
            let renewal = (!is_free).then(|| debt.wait(0, now.mono, self.rpu));
            let (remaining, charged) = (u64::from(is_free), u64::from(!is_free));
            return Balance { remaining, charged, reserved: 0, renewal };
        }
        let remaining = debt::permits(self.capacity.saturating_sub(owed), self.unit);
        // The debt at which one more permit remains.
        let more = self.capacity.checked_sub(product(remaining + 1, self.unit));
        Balance {
            remaining,
            charged: debt.in_permits(self.unit),
            reserved: 0,
            renewal: more.map(|allowed| debt.wait(allowed, now.mono, self.rpu)),
        }
    }

    fn reset(&self, _old: &[u64], now: Now, out: u64, new: &mut [u64]) -> bool {
        only(self, now, out, new);
        self.leases
    }

    fn expires(&self, state: &[u64], _now: Now) -> Micros {
        let BucketState { debt, missing } = BucketState::load(state);
        debt.with(u128::from(missing)).cleared(self.lasting)
    }
}
