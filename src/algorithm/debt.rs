//! Debt that drains at a fixed rate: the state of a bucket.
//!
//! A charge of `cost` permits adds `cost · unit` (unit in ticks) and every tick drains `rpu`, so a
//! permit is worth `unit / rpu` ticks without a division or a rounding error, and a state keeps
//! its meaning when `rpu` or `burst` change: it holds what was used, not what is left. This is the
//! generic cell rate algorithm (ITU-T I.371) with its clock multiplied by `rpu`.

use diana_policy::time::Micros;

/// Words that a debt takes as state.
pub(super) const WORDS: usize = 3;

/// The product of two numbers. Where 32 bits hold each of them, as mostly, it is a single instruction.
#[inline]
pub(super) fn product(one: u64, other: u64) -> u128 {
    if (one | other) >> 32 == 0 {
        u128::from(one.wrapping_mul(other))
    } else {
        u128::from(one) * u128::from(other)
    }
}

/// What a caller owes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Debt {
    /// Permits times ticks. 10⁹ permits a day are 8.64·10¹⁹, more than 64 bits hold.
    amount: u128,
    /// When it was that much.
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

    /// What could have drained until `now` beyond what there was.
    pub(super) fn idle(self, now: Micros, rpu: u64) -> u128 {
        let gone = product(now.saturating_sub(self.at), rpu);
        gone.saturating_sub(self.amount)
    }

    /// The debt left at `now`. A clock that stepped back drains nothing and forgives nothing.
    #[inline(always)]
    pub(super) fn drained(self, now: Micros, rpu: u64) -> Debt {
        let gone = product(now.saturating_sub(self.at), rpu);
        Debt { amount: self.amount.saturating_sub(gone), at: now.max(self.at) }
    }

    #[inline(always)]
    pub(super) fn charged(self, permits: u64, unit: Micros) -> Debt {
        self.with(product(permits, unit))
    }

    /// More of it, by `amount`.
    pub(super) fn with(self, amount: u128) -> Debt {
        Debt { amount: self.amount.saturating_add(amount), ..self }
    }

    /// What is left of it beyond `amount`.
    pub(super) fn without(self, amount: u128) -> Debt {
        Debt { amount: self.amount.saturating_sub(amount), ..self }
    }

    /// Without `permits` that were charged at `since` and come back, less what may have drained of them by `rate`: had
    /// others found the bucket full, it would have been this charge that drained.
    pub(super) fn returned(self, permits: u64, unit: Micros, since: Micros, rate: u64) -> Debt {
        let charge = Debt::default().drained(since, rate).charged(permits, unit);
        self.without(charge.drained(self.at, rate).amount())
    }

    /// Whole permits that it is, rounded up.
    pub(super) fn in_permits(self, unit: Micros) -> u64 {
        permits(self.amount.saturating_add(u128::from(unit.saturating_sub(1))), unit)
    }

    /// At least `amount`.
    pub(super) fn at_least(self, amount: u128) -> Debt {
        Debt { amount: self.amount.max(amount), ..self }
    }

    /// So much that it is not cleared before `then`. What leaves at `then` is charged on top of this:
    /// from `then` on that is what was left then and the charge, and it needs no state that lies in
    /// the future.
    pub(super) fn until(self, then: Micros, rpu: u64) -> Debt {
        self.at_least(u128::from(then.saturating_sub(self.at)) * u128::from(rpu))
    }

    /// The end of the queue: the instant at which nothing is left, in ticks times `rpu` modulo 2⁶⁴.
    /// It stays while the debt drains and moves with every charge, however little that takes.
    pub(super) fn end(self, rpu: u64) -> u64 {
        self.at.wrapping_mul(rpu).wrapping_add(self.amount as u64)
    }

    pub(super) fn amount(self) -> u128 {
        self.amount
    }

    /// Ticks from `now` until no more than `allowed` is left, rounded up.
    pub(super) fn wait(self, allowed: u128, now: Micros, rpu: u64) -> Micros {
        let over = self.amount.saturating_sub(allowed);
        if over == 0 {
            return 0;
        }
        // `at` lies ahead of `now` only after the clock stepped back.
        ticks(over, rpu).saturating_add(self.at.saturating_sub(now))
    }

    /// The instant at which nothing is left.
    pub(super) fn cleared(self, rpu: u64) -> Micros {
        self.at.saturating_add(ticks(self.amount, rpu))
    }
}

/// Whole permits in `amount`.
pub(super) fn permits(amount: u128, unit: Micros) -> u64 {
    // Nearly always, as in `ticks`.
    if let Ok(amount) = u64::try_from(amount) {
        return amount / unit.max(1);
    }
    u64::try_from(amount / u128::from(unit.max(1))).unwrap_or(u64::MAX)
}

/// Ticks in which at most `amount` drains.
pub(super) fn whole_ticks(amount: u128, rpu: u64) -> Micros {
    Micros::try_from(amount / u128::from(rpu.max(1))).unwrap_or(Micros::MAX)
}

/// Ticks that draining `amount` takes, rounded up.
pub(super) fn ticks(amount: u128, rpu: u64) -> Micros {
    if rpu == 0 {
        return if amount == 0 { 0 } else { Micros::MAX };
    }
    // Nearly always; dividing 128 bits takes many times as long.
    if let Ok(amount) = u64::try_from(amount) {
        return amount.div_ceil(rpu);
    }
    Micros::try_from(amount.div_ceil(u128::from(rpu))).unwrap_or(Micros::MAX)
}
