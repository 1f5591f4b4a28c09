//! Requests in flight: at most so many of a caller's at a time. Each takes a place when it comes, which it gives
//! back when it ends, like a charge of which nothing was used.

use std::rc::Rc;

use super::{Algorithm, BuiltAlgorithm, Can, Codec, Entry, Leasing};
use diana_policy::Quota;
use diana_policy::decision::{Decision, Retry};
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now, SECOND};

/// It is no `algo` that a rule chooses, since nothing of it runs out by time: a rule with `in_flight` has it.
pub const ENTRY: Entry = Entry {
    short: "in_flight",
    long: "requests in flight",
    keys: &[],
    build,
    can: |_| Can { queues: false, holds: false, leasing: Leasing::Never, settles: true },
    codec: Some(Codec { kind: "P", numbers: |_| [0; 3] }),
    part: Quota::part,
    by_calendar: false,
    layout: |_| Entry::PLAIN,
};

/// When it makes sense to look again whether a caller has places, since nobody knows when requests end.
const LOOK: Micros = SECOND / 10;

#[derive(Debug)]
struct InFlight {
    limit: u64,
}

fn build(quota: &Quota) -> BuiltAlgorithm {
    Ok(Rc::new(InFlight { limit: quota.rpu }))
}

fn load(state: &[u64]) -> u64 {
    state.first().copied().unwrap_or(0)
}

fn save(state: &mut [u64], places: u64) {
    state.iter_mut().for_each(|word| *word = places);
}

impl Algorithm for InFlight {
    fn words(&self) -> usize {
        1
    }

    fn step(&self, old: &[u64], _now: Now, cost: u64, new: &mut [u64]) -> Decision {
        let places = load(old).saturating_add(cost);
        if places > self.limit {
            return Decision::Refuse { retry: Retry::Soon };
        }
        save(new, places);
        Decision::NOW
    }

    fn receipt(&self, _charged: &[u64]) -> u64 {
        0
    }

    fn refund(&self, old: &[u64], _receipt: u64, permits: u64, new: &mut [u64]) {
        save(new, load(old).saturating_sub(permits));
    }

    fn settle(&self, old: &[u64], _now: Now, settlement: &Settlement, new: &mut [u64]) {
        self.refund(old, settlement.receipt, settlement.reserved, new);
    }

    fn spend_by(&self, _charged: &[u64], _now: Now) -> Option<Micros> {
        None
    }

    fn is_held(&self) -> bool {
        true
    }

    fn most_at_once(&self) -> u64 {
        self.limit
    }

    fn remaining(&self, state: &[u64], _now: Now) -> u64 {
        self.limit.saturating_sub(load(state))
    }

    fn expires(&self, state: &[u64], now: Now) -> Micros {
        if load(state) == 0 { now.mono } else { now.mono.saturating_add(LOOK) }
    }

    fn policy(&self) -> (u64, Micros) {
        (self.limit, 0)
    }
}
