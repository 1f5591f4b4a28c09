//! Leaky bucket: slots exactly `unit / rpu` apart; a request that comes early waits for its slot.
//!
//! A request whose slot lies more than `max_queue` intervals or `max_delay` ahead is refused at
//! once. The wait that the source document derives from a count of blocked threads follows here
//! from the debt alone, so nothing leaks when a waiting request disappears.

use std::rc::Rc;

use super::debt::{self, Debt};
use super::{Algorithm, BuiltAlgorithm, Can, Codec, Conflict, Entry, Leasing, hold, warm_up};
use crate::decision::Decision;
use crate::policy::Quota;
use crate::time::{Micros, Now, SECOND, spell};

/// `LB` in the registry.
pub const ENTRY: Entry = Entry {
    short: "LB",
    long: "leaky bucket",
    // Without any wait it would be a token bucket of one permit.
    keys: &[warm_up::KEY, hold::max_delay(1_000), hold::MAX_QUEUE],
    build,
    can: |_| Can { queues: true, holds: true, leasing: Leasing::Never, settles: false },
    codec: Some(Codec {
        kind: "LB",
        // It is a token bucket as large as what it is asked for.
        numbers: |quota| [Codec::NONE, Codec::signed(max_delay(quota)), hold::places(quota)],
    }),
    part,
    by_calendar: false,
    layout: |_| Entry::PLAIN + 2,
};

#[derive(Debug)]
struct LeakyBucket {
    rpu: u64,
    lasting: u64,
    unit: Micros,
    /// How far ahead a slot may lie, in permits times ticks.
    reach: u128,
}

/// Ticks that a request is held at most.
fn max_delay(quota: &Quota) -> Micros {
    quota.max_delay.unwrap_or(SECOND)
}

/// Slots are further apart where a gateway has only a part of them: who could wait for the next one
/// still can.
fn part(quota: &Quota, gateways: u64) -> Quota {
    let part = quota.part(gateways);
    let apart = part.period().div_ceil(part.rpu.max(1));
    let longest = max_delay(quota).max(apart);
    Quota { max_delay: if part.rpu > 0 { Some(longest) } else { quota.max_delay }, ..part }
}

fn build(quota: &Quota) -> BuiltAlgorithm {
    let unit = quota.period();
    let max_delay = max_delay(quota).max(1);
    let mut conflicts = warm_up::conflicts(quota);
    if quota.rpu > 0 {
        if quota.cost > quota.rpu {
            conflicts.push(Conflict::cost_above_rpu(quota));
        }
        if u128::from(unit) > u128::from(max_delay) * u128::from(quota.rpu) {
            conflicts.push(slots_too_far_apart(quota, max_delay));
        }
    }
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let reach = hold::reach(quota, max_delay);
    Ok(match quota.warm_up {
        Some(warm_up) => warm_up::build(quota, warm_up, Some(reach)),
        None => Rc::new(LeakyBucket { rpu: quota.rpu, lasting: quota.lasting(), unit, reach }),
    })
}

fn slots_too_far_apart(quota: &Quota, max_delay: Micros) -> Conflict {
    let unit = quota.period();
    let delay = spell(max_delay);
    let least = unit.div_ceil(max_delay);
    let longer =
        if unit.div_ceil(quota.rpu) <= hold::LONGEST { ", a longer `max_delay`" } else { "" };
    let message = format!(
        "found `{}`: slots would be further apart than `max_delay`, {delay}, so that nobody could \
         wait for the next one; allowed: at least {least} per {}{longer}, or `algo: TB` with \
         `burst: 1`, which refuses early requests",
        quota.rpu,
        quota.unit.name()
    );
    Conflict { key: "rpu", with: &["unit", "max_delay"], message }
}

impl Algorithm for LeakyBucket {
    fn words(&self) -> usize {
        debt::WORDS
    }

    fn step(&self, old: &[u64], now: Now, cost: u64, new: &mut [u64]) -> Decision {
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
        if self.rpu == 0 {
            return Decision::NEVER;
        }
        let leaves = now.mono.saturating_add(delay);
        let ahead = Debt::load(old).drained(now.mono, self.rpu).until(leaves, self.rpu);
        match ahead.wait(self.reach, now.mono, self.rpu) {
            0 => {
                ahead.charged(cost, self.unit).save(new);
                Decision::Admit { wait: ahead.wait(0, now.mono, self.rpu) }
            }
            wait => Decision::retry(wait),
        }
    }

    fn receipt(&self, charged: &[u64]) -> u64 {
        Debt::load(charged).end(self.rpu)
    }

    fn refund(&self, old: &[u64], receipt: u64, permits: u64, new: &mut [u64]) {
        // The slots of those behind are given away: a slot before theirs passes unused.
        let debt = Debt::load(old);
        let back = if debt.end(self.rpu) == receipt { permits } else { 0 };
        debt.refunded(back, self.unit).save(new);
    }

    fn spend_by(&self, _charged: &[u64], _now: Now) -> Option<Micros> {
        None
    }

    fn most_at_once(&self) -> u64 {
        if self.rpu > 0 { u64::MAX } else { 0 }
    }

    fn remaining(&self, state: &[u64], now: Now) -> u64 {
        u64::from(self.rpu > 0 && Debt::load(state).drained(now.mono, self.rpu).amount() == 0)
    }

    fn expires(&self, state: &[u64], _now: Now) -> Micros {
        Debt::load(state).cleared(self.lasting)
    }

    fn policy(&self) -> (u64, Micros) {
        (self.rpu, self.unit)
    }
}
