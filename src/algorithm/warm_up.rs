//! Warm-up: after idle time one request passes at once. The next slots are nearly three times
//! `unit / rpu` apart, and their distance decreases to `unit / rpu` within `warm_up`.
//!
//! This is Guava's `SmoothWarmingUp` with cold factor 3. An idle bucket stores permits, one per
//! `unit / rpu`, up to `warm_up · rpu / unit`. The more permits are stored, the longer a request
//! takes that uses one. All amounts are in permits times ticks, as in `debt.rs`: the stored amount
//! grows by `rpu` in an idle tick, and a permit reduces it by `unit`. Permits in the upper half
//! take longer.

use super::{Conflict, Form, Setting};
use diana_policy::Quota;
use diana_policy::time::SECOND;

/// `warm_up`, in ticks. With an hour at the largest `rpu`, the stored amount fits into 64 bits.
pub(super) const KEY: Setting = Setting {
    name: "warm_up",
    field: |quota| &mut quota.warm_up,
    form: Form::Duration,
    min: 1_000,
    max: 3_600 * SECOND,
    global: false,
    by_plan: false,
};

/// Invalid combinations with `warm_up`.
pub(super) fn conflicts(quota: &Quota) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    if quota.warm_up.is_some() && quota.rpu == 0 {
        conflicts.push(Conflict::without_effect("warm_up"));
    }
    if quota.warm_up.is_some() && quota.burst.is_some() {
        let message = "has no effect with `warm_up`, which admits one request at once after idle time; remove one of the two";
        conflicts.push(Conflict { key: "burst", with: &["warm_up"], message: message.into() });
    }
    conflicts
}

/// The stored permits of a bucket. A caller's state contains the missing permits, so that all zero
/// is the state of a new caller.
#[derive(Debug, Clone, Copy)]
pub(super) struct WarmUp {
    /// The capacity. 0 without `warm_up`: then no permit is missing, and no charge has an extra
    /// cost.
    cold: u64,
}

impl WarmUp {
    pub(super) fn of(quota: &Quota) -> WarmUp {
        let size = |warm_up: u64| warm_up.saturating_mul(quota.rpu).max(1);
        WarmUp { cold: quota.warm_up.map_or(0, size) }
    }

    /// Words of state.
    pub(super) fn words(self) -> usize {
        usize::from(self.cold > 0)
    }

    /// Takes `amount` from a store that lacks `missing`, and has grown by `idle` since. Returns the
    /// extra cost of the charge and the missing permits after it.
    pub(super) fn take(self, amount: u128, missing: u64, idle: u128) -> (u128, u64) {
        let from = self.cold.saturating_sub(missing.saturating_sub(bounded(idle)));
        let to = from.saturating_sub(bounded(amount));
        (self.extra(from, to), self.cold - to)
    }

    /// Returns `amount` to a store that lacks `missing`. Returns the extra cost of the charge and
    /// the missing permits after it.
    pub(super) fn put_back(self, amount: u128, missing: u64) -> (u128, u64) {
        let to = self.cold.saturating_sub(missing);
        let from = to.saturating_add(bounded(amount)).min(self.cold);
        // A charge that emptied the store may have found less than `amount` in it. Then the extra
        // cost is unknown.
        let extra = if to > 0 { self.extra(from, to) } else { 0 };
        (extra, self.cold - from)
    }

    /// The extra cost of a charge that lowers the stored amount from `from` to `to`, rounded up:
    /// `2 · (x² − y²) / cold`, where `x` and `y` are the distances of `from` and `to` above one
    /// half of `cold`, or zero. It is the area under Guava's line, which rises from one interval at
    /// one half to three at `cold`.
    fn extra(self, from: u64, to: u64) -> u128 {
        // Without `warm_up` both are 0, and `cold` is no divisor.
        if from == to {
            return 0;
        }
        let cold = u128::from(self.cold);
        let squared = |stored: u64| (2 * u128::from(stored)).saturating_sub(cold).pow(2);
        squared(from).saturating_sub(squared(to)).div_ceil(2 * cold)
    }
}

fn bounded(amount: u128) -> u64 {
    u64::try_from(amount).unwrap_or(u64::MAX)
}
