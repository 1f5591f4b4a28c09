//! Debt that drains at a fixed rate: the state of a bucket.
//!
//! A charge of `cost` permits adds `cost · unit` (unit in ticks), and every tick drains `rpu`. A
//! permit is thus worth `unit / rpu` ticks without a division or a rounding error. A state contains
//! used permits, not remaining ones, so it keeps its meaning when `rpu` or `burst` change. This is
//! the generic cell rate algorithm (ITU-T I.371) with its clock multiplied by `rpu`.

use diana_policy::time::Micros;

/// Words of state.
pub(super) const WORDS: usize = 3;

/// The product of two numbers, in a single instruction if both fit 32 bits, as they usually do.
#[inline]
pub(super) fn product(one: u64, other: u64) -> u128 {
    if (one | other) >> 32 == 0 {
        u128::from(one.wrapping_mul(other))
    } else {
        u128::from(one) * u128::from(other)
    }
}

/// The debt of a caller.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Debt {
    /// Permits times ticks. 10⁹ permits a day are 8.64·10¹⁹, which exceeds 64 bits.
    amount: u128,
    /// The instant of this amount.
    at: Micros,
}

impl Debt {
    #[inline(always)]
    pub(super) fn load(state: &[u64]) -> Debt {
        match *state {
            [low, high, at] => Debt { amount: u128::from(high) << 64 | u128::from(low), at },
            _ => Debt::default(),
        }
    }

    #[inline(always)]
    pub(super) fn save(self, state: &mut [u64]) {
        if let [low, high, at] = state {
            *low = self.amount as u64;
            *high = (self.amount >> 64) as u64;
            *at = self.at;
        }
    }

    /// No debt at an instant.
    pub(super) fn at(at: Micros) -> Debt {
        Debt { amount: 0, at }
    }

    /// The amount that could have drained by `now` beyond the debt.
    pub(super) fn idle(self, now: Micros, rpu: u64) -> u128 {
        let gone = product(now.saturating_sub(self.at), rpu);
        gone.saturating_sub(self.amount)
    }

    /// The debt at `now`. If the clock steps back, the debt neither drains nor shrinks.
    #[inline(always)]
    pub(super) fn drained(self, now: Micros, rpu: u64) -> Debt {
        let gone = product(now.saturating_sub(self.at), rpu);
        Debt { amount: self.amount.saturating_sub(gone), at: now.max(self.at) }
    }

    #[inline(always)]
    pub(super) fn charged(self, permits: u64, unit: Micros) -> Debt {
        self.with(product(permits, unit))
    }

    /// The debt increased by `amount`.
    pub(super) fn with(self, amount: u128) -> Debt {
        Debt { amount: self.amount.saturating_add(amount), ..self }
    }

    /// The debt reduced by `amount`.
    pub(super) fn without(self, amount: u128) -> Debt {
        Debt { amount: self.amount.saturating_sub(amount), ..self }
    }

    /// The debt without `permits` that were charged at `since` and are returned, less the amount
    /// that may have drained at `rate` since: if the bucket was full for others, this charge
    /// drained.
    pub(super) fn returned(self, permits: u64, unit: Micros, since: Micros, rate: u64) -> Debt {
        let charge = Debt::default().drained(since, rate).charged(permits, unit);
        self.without(charge.drained(self.at, rate).amount())
    }

    /// The debt in whole permits, rounded up.
    pub(super) fn in_permits(self, unit: Micros) -> u64 {
        permits(self.amount.saturating_add(u128::from(unit.saturating_sub(1))), unit)
    }

    /// The debt, increased to at least `amount`.
    pub(super) fn at_least(self, amount: u128) -> Debt {
        Debt { amount: self.amount.max(amount), ..self }
    }

    /// The debt, increased so that it is not cleared before `then`. A request that leaves at `then`
    /// is charged on top. From `then` on, the debt equals the remaining debt at that instant plus
    /// the charge, without a state that lies in the future.
    pub(super) fn until(self, then: Micros, rpu: u64) -> Debt {
        self.at_least(u128::from(then.saturating_sub(self.at)) * u128::from(rpu))
    }

    /// The end of the queue: the instant at which the debt is cleared, in ticks times `rpu` modulo
    /// 2⁶⁴. Draining does not change it, and every charge moves it, however small.
    pub(super) fn end(self, rpu: u64) -> u64 {
        self.at.wrapping_mul(rpu).wrapping_add(self.amount as u64)
    }

    pub(super) fn amount(self) -> u128 {
        self.amount
    }

    /// Ticks from `now` until the debt is at most `allowed`, rounded up.
    pub(super) fn wait(self, allowed: u128, now: Micros, rpu: u64) -> Micros {
        let over = self.amount.saturating_sub(allowed);
        if over == 0 {
            return 0;
        }
        // `at` is later than `now` only after the clock stepped back.
        ticks(over, rpu).saturating_add(self.at.saturating_sub(now))
    }

    /// The instant at which the debt is cleared.
    pub(super) fn cleared(self, rpu: u64) -> Micros {
        self.at.saturating_add(ticks(self.amount, rpu))
    }
}

/// Whole permits in `amount`.
pub(super) fn permits(amount: u128, unit: Micros) -> u64 {
    // The common case, as in `ticks`.
    if let Ok(amount) = u64::try_from(amount) {
        return amount / unit.max(1);
    }
    u64::try_from(amount / u128::from(unit.max(1))).unwrap_or(u64::MAX)
}

/// Whole ticks in `amount`: its draining takes at least these.
pub(super) fn whole_ticks(amount: u128, rpu: u64) -> Micros {
    Micros::try_from(amount / u128::from(rpu.max(1))).unwrap_or(Micros::MAX)
}

/// Ticks in which `amount` drains, rounded up.
pub(super) fn ticks(amount: u128, rpu: u64) -> Micros {
    if rpu == 0 {
        return if amount == 0 { 0 } else { Micros::MAX };
    }
    // The common case: a division of 128 bits is many times slower.
    if let Ok(amount) = u64::try_from(amount) {
        return amount.div_ceil(rpu);
    }
    Micros::try_from(amount.div_ceil(u128::from(rpu))).unwrap_or(Micros::MAX)
}
