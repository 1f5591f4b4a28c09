//! Token bucket: `burst` tokens at the start, refilled at `rpu` per unit.
//!
//! In any `t` it admits at most `burst + rpu · t / unit`, and a request that fits is never refused.
//! With `max_delay` a request without a token waits for it, as with Guava's `SmoothBursty`, except
//! that the request itself waits and not the one after it; then all this holds for departures.

use std::rc::Rc;

use super::debt::{self, Debt};
use super::{
    Algorithm, BuiltAlgorithm, Can, Codec, Conflict, Entry, Form, Leasing, Setting, hold, warm_up,
};
use crate::decision::Decision;
use crate::policy::{MAX_PERMITS, Quota};
use crate::time::{Micros, Now};

/// `TB` in the registry.
pub const ENTRY: Entry = Entry {
    short: "TB",
    long: "token bucket",
    keys: &[
        Setting {
            name: "burst",
            field: |quota| &mut quota.burst,
            form: Form::Number,
            min: 1,
            max: MAX_PERMITS,
            global: true,
            by_plan: true,
        },
        warm_up::KEY,
        hold::max_delay(0),
        hold::MAX_QUEUE,
    ],
    build,
    can,
    codec: Some(Codec {
        kind: "TB",
        numbers: |quota| {
            let delay = max_delay(quota).map_or(Codec::NONE, Codec::signed);
            [Codec::signed(burst(quota)), delay, hold::places(quota)]
        },
    }),
    part: Quota::part,
    by_calendar: false,
    layout: |_| Entry::PLAIN + 2,
};

#[derive(Debug)]
struct TokenBucket {
    rpu: u64,
    lasting: u64,
    /// The highest rate at which a charge may have drained.
    fastest: u64,
    unit: Micros,
    burst: u64,
    /// The largest debt: `burst` permits.
    capacity: u128,
    /// With `max_delay`: how far ahead a request's token may lie, in permits times ticks. Without it
    /// nothing is held, and requests count when they are decided.
    reach: Option<u128>,
}

fn can(quota: &Quota) -> Can {
    let holds = max_delay(quota).is_some();
    let leases = !holds && quota.warm_up.is_none();
    let leasing = if leases { Leasing::Bucket } else { Leasing::Never };
    // A charge drains while its stream is open, so its unused permits cannot be returned exactly.
    Can { queues: false, holds, leasing, settles: false }
}

fn burst(quota: &Quota) -> u64 {
    if quota.rpu == 0 { 0 } else { quota.burst.unwrap_or(quota.rpu) }
}

/// Ticks that a request is held at most, if it is held at all.
fn max_delay(quota: &Quota) -> Option<Micros> {
    quota.max_delay.filter(|delay| *delay > 0)
}

fn build(quota: &Quota) -> BuiltAlgorithm {
    let mut conflicts = warm_up::conflicts(quota);
    if quota.rpu == 0 && quota.burst.is_some() {
        conflicts.push(Conflict::beside_nothing("burst"));
    }
    let burst = burst(quota);
    if quota.cost > burst && quota.rpu > 0 {
        // Beside `burst` no other `rpu` would help.
        let (name, with): (_, &[_]) =
            if quota.burst.is_some() { ("burst", &["burst"]) } else { ("rpu", &["rpu", "burst"]) };
        let message =
            format!("found `{}`, which never fits; allowed: at most `{name}`, {burst}", quota.cost);
        conflicts.push(Conflict { key: "cost", with, message });
    }
    let max_delay = max_delay(quota);
    if quota.max_queue.is_some() && max_delay.is_none() {
        let message =
            "means nothing without `max_delay`: an early request is refused, not queued".into();
        conflicts.push(Conflict { key: "max_queue", with: &["max_delay"], message });
    }
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let unit = quota.period();
    let capacity = u128::from(burst) * u128::from(unit);
    let reach = max_delay.map(|delay| hold::reach(quota, delay));
    if let Some(warm_up) = quota.warm_up {
        return Ok(warm_up::build(quota, warm_up, reach));
    }
    let (rpu, lasting) = (quota.rpu, quota.lasting());
    let fastest = quota.fastest();
    Ok(Rc::new(TokenBucket { rpu, lasting, fastest, unit, burst, capacity, reach }))
}

impl Algorithm for TokenBucket {
    fn words(&self) -> usize {
        debt::WORDS
    }

    fn step(&self, old: &[u64], now: Now, cost: u64, new: &mut [u64]) -> Decision {
        // What has its token, as most have, needs no look at the queue.
        let debt = Debt::load(old).drained(now.mono, self.rpu).charged(cost, self.unit);
        if debt.amount() <= self.capacity {
            debt.save(new);
            return Decision::NOW;
        }
        self.reserve(old, now, 0, cost, new)
    }

    fn reserve(
        &self,
        old: &[u64],
        now: Now,
        delay: Micros,
        cost: u64,
        new: &mut [u64],
    ) -> Decision {
        if cost > self.burst {
            return Decision::NEVER;
        }
        let delay = if self.reach.is_some() { delay } else { 0 };
        let leaves = now.mono.saturating_add(delay);
        let debt = Debt::load(old).drained(now.mono, self.rpu);
        let turn = debt.charged(cost, self.unit).without(self.capacity).until(leaves, self.rpu);
        match turn.wait(self.reach.unwrap_or(0), now.mono, self.rpu) {
            0 => {
                debt.until(leaves, self.rpu).charged(cost, self.unit).save(new);
                Decision::Admit { wait: turn.wait(0, now.mono, self.rpu) }
            }
            wait => Decision::retry(wait),
        }
    }

    fn receipt(&self, charged: &[u64]) -> u64 {
        if self.reach.is_some() { Debt::load(charged).end(self.rpu) } else { 0 }
    }

    fn refund(&self, old: &[u64], receipt: u64, permits: u64, new: &mut [u64]) {
        let back = if self.receipt(old) == receipt { permits } else { 0 };
        Debt::load(old).refunded(back, self.unit).save(new);
    }

    fn take_back(&self, old: &[u64], receipt: u64, permits: u64, since: Micros, new: &mut [u64]) {
        if self.reach.is_some() {
            return self.refund(old, receipt, permits, new);
        }
        Debt::load(old).returned(permits, self.unit, since, self.fastest).save(new);
    }

    fn debit(&self, old: &[u64], now: Now, permits: u64, new: &mut [u64]) {
        Debt::load(old).drained(now.mono, self.rpu).charged(permits, self.unit).save(new);
    }

    fn spend_by(&self, _charged: &[u64], _now: Now) -> Option<Micros> {
        self.reach.is_none().then_some(Micros::MAX)
    }

    fn hold_back(&self, old: &[u64], out: u64, at: Micros, new: &mut [u64]) {
        let kept = u128::from(out) * u128::from(self.unit);
        Debt::load(old).drained(at, self.rpu).at_least(kept).save(new);
    }

    fn most_out(&self) -> u64 {
        self.burst / 2
    }

    fn charged(&self, state: &[u64], now: Now) -> u64 {
        Debt::load(state).drained(now.mono, self.rpu).in_permits(self.unit)
    }

    fn lift(&self, _old: &[u64], now: Now, out: u64, new: &mut [u64]) -> bool {
        super::only(self, now, out, new);
        self.reach.is_none()
    }

    fn most_at_once(&self) -> u64 {
        self.burst
    }

    fn remaining(&self, state: &[u64], now: Now) -> u64 {
        let owed = Debt::load(state).drained(now.mono, self.rpu).amount();
        debt::permits(self.capacity.saturating_sub(owed), self.unit)
    }

    fn expires(&self, state: &[u64], _now: Now) -> Micros {
        Debt::load(state).cleared(self.lasting)
    }

    fn policy(&self) -> (u64, Micros) {
        if self.rpu == 0 {
            return (0, self.unit);
        }
        (self.burst, debt::ticks(self.capacity, self.rpu))
    }
}
