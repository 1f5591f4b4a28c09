//! In-flight limit: a maximum of concurrent requests of a caller. Each takes a slot when it arrives
//! and frees it when it ends, like a charge without usage.

use std::sync::Arc;

use super::{Algorithm, Balance, BuiltAlgorithm, Capabilities, Codec, Entry, Leasing, Properties};
use diana_policy::Quota;
use diana_policy::decision::{Decision, Retry};
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now, SECOND};

/// Not selectable as `algo`, since its usage does not expire by time: rules with `in_flight` use
/// it.
pub const ENTRY: Entry = Entry {
    short: "in_flight",
    long: "requests in flight",
    aliases: &[],
    keys: &[],
    build,
    counts_used: None,
    capabilities: |_| Capabilities {
        queues: false,
        holds: false,
        leasing: Leasing::Never,
        settles: true,
    },
    codec: Some(Codec { kind: "P", numbers: |_| [0; 3] }),
    share: Quota::share,
    by_calendar: false,
    layout: |_| Entry::PLAIN,
};

/// How long a state with used slots is assumed to stay live, since the end of requests is unknown.
const RECHECK_AFTER: Micros = SECOND / 10;

#[derive(Debug)]
struct InFlight {
    properties: Properties,
}

fn build(quota: &Quota) -> BuiltAlgorithm {
    let properties = Properties { is_held: true, ..Properties::new(1, quota.rpu, 0) };
    Ok(Arc::new(InFlight { properties }))
}

fn load(state: &[u64]) -> u64 {
    state.first().copied().unwrap_or(0)
}

fn save(state: &mut [u64], slots: u64) {
    state.iter_mut().for_each(|word| *word = slots);
}

impl Algorithm for InFlight {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn step(&self, old: &[u64], _now: Now, _delay: Micros, cost: u64, new: &mut [u64]) -> Decision {
        let slots = load(old).saturating_add(cost);
        if slots > self.properties.limit {
            return Decision::Refuse { retry: Retry::Soon };
        }
        save(new, slots);
        Decision::NOW
    }

    fn receipt(&self, _charged: &[u64]) -> u64 {
        0
    }

    fn settle(&self, old: &[u64], _now: Now, settlement: &Settlement, new: &mut [u64]) {
        save(new, load(old).saturating_sub(settlement.reserved));
    }

    fn spend_by(&self, _charged: &[u64], _now: Now) -> Option<Micros> {
        None
    }

    fn balance(&self, state: &[u64], _now: Now) -> Balance {
        let slots = load(state);
        let remaining = self.properties.limit.saturating_sub(slots);
        let renewal = (slots > 0).then_some(1);
        Balance { remaining, charged: u64::from(remaining == 0), reserved: 0, renewal }
    }

    fn reset(&self, _old: &[u64], _now: Now, _out: u64, _new: &mut [u64]) -> bool {
        false
    }

    fn expires(&self, state: &[u64], now: Now) -> Micros {
        if load(state) == 0 { now.mono } else { now.mono.saturating_add(RECHECK_AFTER) }
    }
}
