//! Bans: a caller that is refused too often is refused outright for a while, longer with each
//! relapse.
//!
//! A caller's state is a few machine words: the end of its ban, the level of its recent bans, and a
//! ring of its recent refusals. A pure step changes it as one value, as with the state of an
//! algorithm. All zero is the state of an unknown caller.

pub mod set;

use crate::ring::Ring;
use crate::time::{Micros, SECOND};

/// Slices of `within`. The ring has one more, so a refusal counts for `within` to 8/7 of it.
const SLICES: usize = 7;

/// Words of a caller's state: the end of its ban, its level, and the ring.
pub const WORDS: usize = 2 + 1 + (SLICES + 1).div_ceil(2);

const RING: Ring = Ring::new(SLICES + 1);

/// Replaces the level after an operator has ended a ban. The instant of the reset is then in place
/// of the end. No ban begins at this level.
const RESET: u64 = 1_000;

/// Time after a reset during which refusals do not count. They may be reported late, or come from a
/// worker that still enforces the ban.
const GRACE: Micros = SECOND;

/// Upper bound of the level. A ban reaches `max` after fewer doublings, so a higher level is
/// damaged. Without the bound it would weigh as much as a ban.
const MOST_LEVELS: u64 = 64;

/// The conditions and the length of a rule's bans. All durations are in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ban {
    /// Refusals that lead to a ban, at least one.
    pub after: u64,
    /// The period in which they are counted.
    pub within: Micros,
    /// Length of the first ban.
    pub period: Micros,
    /// Maximum length of a ban, at least `period`.
    pub max: Micros,
    /// The time after the end of a ban in which the length of the next one halves.
    pub halve_after: Micros,
    /// Whether bans are only reported, since the rule is in shadow.
    pub is_shadow: bool,
}

impl Ban {
    /// Identifies the ban across configurations: a hash of the rule and all parameters. A ban that
    /// is only reported is another one, so that none is enforced when its rule leaves shadow.
    #[must_use]
    pub fn fingerprint(&self, rule: u64) -> u64 {
        // Each step is one-to-one, so changing one number changes the result.
        let mix = |hash: u64, number: u64| (hash ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let Ban { after, within, period, max, halve_after, is_shadow } = *self;
        let hash = [after, within, period, max, halve_after].into_iter().fold(!rule, mix);
        if is_shadow { mix(hash, 1) } else { hash }
    }

    /// The monotonic instant at which the ban ends or ended. 0 if there was none.
    #[must_use]
    pub fn until(state: &[u64]) -> Micros {
        state.first().copied().unwrap_or(0)
    }

    /// Remaining ticks of a ban that ends at `until`. An end far beyond the maximum length is
    /// damaged and counts as no ban.
    #[must_use]
    pub fn left(&self, until: Micros, now: Micros) -> Micros {
        let left = until.saturating_sub(now);
        if left > self.max.saturating_mul(2) { 0 } else { left }
    }

    /// Records a ban that began in another worker or gateway and ends at `until`.
    pub fn begin(state: &mut [u64], until: Micros) {
        if let [end, level, ..] = state {
            *end = until;
            if *level == RESET {
                *level = 0;
            }
        }
    }

    /// Clears the state of a caller when an operator ends its ban at `now`.
    pub fn reset(state: &mut [u64], now: Micros) {
        state.fill(0);
        state.iter_mut().zip([now, RESET]).for_each(|(word, new)| *word = new);
    }

    /// Counts refusals at `now`. Refusals during a ban, and in the second after a reset, do not
    /// count. Returns true if a ban begins.
    pub fn count(&self, state: &mut [u64], now: Micros, refusals: u64) -> bool {
        let is_reset = matches!(state, [at, RESET, ..] if now < at.saturating_add(GRACE));
        if is_reset || self.left(Ban::until(state), now) > 0 {
            return false;
        }
        let level = self.level(state, now);
        RING.add(state.get_mut(2..).unwrap_or_default(), now / self.slice(), refusals);
        if self.recent(state, now) < self.after {
            return false;
        }
        state.fill(0);
        if let [until, last, ..] = state {
            let length = self.period.saturating_mul(1 << level.min(63)).min(self.max);
            *until = now.saturating_add(length);
            *last = if length < self.max { level.saturating_add(1) } else { level };
        }
        true
    }

    /// The number of recent refusals.
    #[must_use]
    #[inline(never)]
    pub fn recent(&self, state: &[u64], now: Micros) -> u64 {
        RING.sum(state.get(2..).unwrap_or_default(), now / self.slice())
    }

    /// The cost of losing a state: zero for an expired one, the maximum during a ban. Recent bans
    /// weigh more than refusals.
    #[must_use]
    pub fn weight(&self, state: &[u64], now: Micros) -> u64 {
        if self.left(Ban::until(state), now) > 0 {
            return u64::MAX;
        }
        self.level(state, now).saturating_mul(self.after).saturating_add(self.recent(state, now))
    }

    /// The number of doublings of the next ban's length.
    fn level(&self, state: &[u64], now: Micros) -> u64 {
        let [until, level, ..] = state else { return 0 };
        if *level == RESET {
            return 0;
        }
        let halved = now.saturating_sub(*until) / self.halve_after.max(1);
        (*level).min(MOST_LEVELS).saturating_sub(halved)
    }

    /// Length of a slice in ticks.
    #[must_use]
    pub fn slice(&self) -> Micros {
        self.within.div_ceil(SLICES as u64).max(1)
    }
}
