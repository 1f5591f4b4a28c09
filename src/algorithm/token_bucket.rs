//! Token bucket: `burst` tokens at the start, refilled at `rpu` per unit.
//!
//! In any `t` it admits at most `burst + rpu · t / unit`, and a request that fits is never refused.
//! With `max_delay` a request without a token waits for it, as with Guava's `SmoothBursty`, except
//! that the request itself waits and not the next one. The bounds then apply to departures.

use super::{
    BuiltAlgorithm, Capabilities, Codec, Conflict, Entry, Form, Leasing, Setting, bucket, hold,
    warm_up,
};
use diana_policy::time::Micros;
use diana_policy::{MAX_DRAINED, Quota};

/// `TB` in the registry.
pub const ENTRY: Entry = Entry {
    short: "TB",
    long: "token bucket",
    aliases: &[],
    keys: &[
        Setting {
            name: "burst",
            field: |quota| &mut quota.burst,
            form: Form::Number,
            min: 1,
            max: MAX_DRAINED,
            global: true,
            by_plan: true,
        },
        warm_up::KEY,
        hold::max_delay(0),
        hold::MAX_QUEUE,
    ],
    build,
    counts_used: None,
    capabilities,
    codec: Some(Codec {
        kind: "TB",
        numbers: |quota| {
            let delay = max_delay(quota).map_or(Codec::NONE, Codec::signed);
            [Codec::signed(burst(quota)), delay, hold::max_queue_number(quota)]
        },
    }),
    share: Quota::share,
    by_calendar: false,
    layout: |_| Entry::PLAIN + 2,
};

fn capabilities(quota: &Quota) -> Capabilities {
    let holds = max_delay(quota).is_some();
    let leases = !holds && quota.warm_up.is_none();
    let leasing = if leases { Leasing::Bucket } else { Leasing::Never };
    // A charge drains while its stream is open, so its unused permits cannot be returned exactly.
    Capabilities { queues: false, holds, leasing, settles: false }
}

fn burst(quota: &Quota) -> u64 {
    if quota.rpu == 0 { 0 } else { quota.burst.unwrap_or(quota.rpu) }
}

/// The maximum hold of a request in ticks, if requests are held.
fn max_delay(quota: &Quota) -> Option<Micros> {
    quota.max_delay.filter(|delay| *delay > 0)
}

fn build(quota: &Quota) -> BuiltAlgorithm {
    let mut conflicts = bucket::conflicts(quota);
    if quota.rpu == 0 && quota.burst.is_some() {
        conflicts.push(Conflict::without_effect("burst"));
    }
    let burst = burst(quota);
    if quota.cost > burst && quota.rpu > 0 {
        // With `burst`, another `rpu` would not help.
        let (name, with): (_, &[_]) =
            if quota.burst.is_some() { ("burst", &["burst"]) } else { ("rpu", &["rpu", "burst"]) };
        let message =
            format!("found `{}`, which never fits; allowed: at most `{name}`, {burst}", quota.cost);
        conflicts.push(Conflict { key: "cost", with, message });
    }
    let max_delay = max_delay(quota);
    if quota.max_queue.is_some() && max_delay.is_none() {
        let message =
            "has no effect without `max_delay`: early requests are refused, not held; set `max_delay`, or remove this".into();
        conflicts.push(Conflict { key: "max_queue", with: &["max_delay"], message });
    }
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    // With `warm_up` it has room for a single request.
    let burst = quota.warm_up.is_none().then_some(burst);
    Ok(bucket::build(quota, burst, max_delay.map(|delay| hold::reach(quota, delay))))
}
