//! Leaky bucket: slots exactly `unit / rpu` apart; an early request waits for its slot.
//!
//! A request with a slot more than `max_queue` intervals or `max_delay` ahead is refused at once.
//! The source document derives the wait from a count of blocked threads. Here it follows from the
//! debt alone, so that a lost request leaks no slot.

use super::{BuiltAlgorithm, Capabilities, Codec, Conflict, Entry, Leasing, bucket, hold, warm_up};
use diana_policy::Quota;
use diana_policy::time::{Micros, SECOND, spell};

/// `LB` in the registry.
pub const ENTRY: Entry = Entry {
    short: "LB",
    long: "leaky bucket",
    aliases: &[],
    // Without any wait it would be a token bucket of one permit.
    keys: &[warm_up::KEY, hold::max_delay(1_000), hold::MAX_QUEUE],
    build,
    counts_used: None,
    capabilities: |_| Capabilities {
        queues: true,
        holds: true,
        leasing: Leasing::Never,
        settles: false,
    },
    codec: Some(Codec {
        kind: "LB",
        // In the script, a token bucket of the size of the request.
        numbers: |quota| {
            [Codec::NONE, Codec::signed(max_delay(quota)), hold::max_queue_number(quota)]
        },
    }),
    share,
    by_calendar: false,
    layout: |_| Entry::PLAIN + 2,
};

/// The maximum hold of a request in ticks.
fn max_delay(quota: &Quota) -> Micros {
    quota.max_delay.unwrap_or(SECOND)
}

/// The slots of a gateway's share are further apart, so the maximum delay grows with them: a
/// request can still wait for the next slot.
fn share(quota: &Quota, gateways: u64) -> Quota {
    let share = quota.share(gateways);
    let apart = share.period().div_ceil(share.rpu.max(1));
    let longest = max_delay(quota).max(apart);
    Quota { max_delay: if share.rpu > 0 { Some(longest) } else { quota.max_delay }, ..share }
}

fn build(quota: &Quota) -> BuiltAlgorithm {
    let unit = quota.period();
    let max_delay = max_delay(quota).max(1);
    let mut conflicts = bucket::conflicts(quota);
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
    // Room for a single request or, with `rpu: 0`, for none.
    let burst = (quota.rpu == 0).then_some(0);
    Ok(bucket::build(quota, burst, Some(hold::reach(quota, max_delay))))
}

fn slots_too_far_apart(quota: &Quota, max_delay: Micros) -> Conflict {
    let unit = quota.period();
    let delay = spell(max_delay);
    let least = unit.div_ceil(max_delay);
    let longer =
        if unit.div_ceil(quota.rpu) <= hold::LONGEST { ", a longer `max_delay`" } else { "" };
    let message = format!(
        "found `{}`: slots would be further apart than `max_delay`, {delay}, so that no request \
         could wait for the next one; allowed: at least {least} per {}{longer}, or `algo: TB` with \
         `burst: 1`, which refuses early requests",
        quota.rpu,
        quota.unit.name()
    );
    Conflict { key: "rpu", with: &["unit", "max_delay"], message }
}
