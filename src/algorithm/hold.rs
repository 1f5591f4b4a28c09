//! Early requests, which are held until their turn instead of being refused.

use super::{Codec, Form, Setting};
use diana_policy::time::{Micros, SECOND};
use diana_policy::{MAX_DRAINED, Quota};

/// The maximum configurable wait. Envoy resets a request whose wait reaches the listener's
/// `stream_idle_timeout`, 30 s in the shipped configurations.
pub(super) const LONGEST: Micros = 20 * SECOND;

/// `max_delay` in ticks, with the smallest effective value `min`.
pub(super) const fn max_delay(min: Micros) -> Setting {
    Setting {
        name: "max_delay",
        field: |quota| &mut quota.max_delay,
        form: Form::Duration,
        min,
        max: LONGEST,
        global: true,
        by_plan: true,
    }
}

/// `max_queue`, in intervals.
pub(super) const MAX_QUEUE: Setting = Setting {
    name: "max_queue",
    field: |quota| &mut quota.max_queue,
    form: Form::Number,
    min: 0,
    max: MAX_DRAINED,
    global: true,
    by_plan: true,
};

/// `max_queue` as the parameter of the Redis script.
pub(super) fn max_queue_number(quota: &Quota) -> i64 {
    Codec::signed(quota.max_queue.unwrap_or(quota.rpu))
}

/// The maximum distance of a request's turn, in permits times ticks: `max_queue` intervals of
/// `unit / rpu`, and `max_delay` ticks.
pub(super) fn reach(quota: &Quota, max_delay: Micros) -> u128 {
    let queue = u128::from(quota.max_queue.unwrap_or(quota.rpu)) * u128::from(quota.period());
    queue.min(u128::from(max_delay) * u128::from(quota.rpu))
}
