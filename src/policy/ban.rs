//! Bans: who is refused too often is refused outright for a while, longer each time it relapses.
//!
//! A caller's state is a few machine words: until when it is banned, how often that happened lately,
//! and a ring of its recent refusals. It is changed as one value by a pure step, as the state of an
//! algorithm is. All zero is the state of nobody.

pub mod set;

use crate::ring::Ring;
use crate::time::{Micros, SECOND};

/// Slices of `within`; one more is remembered, so a refusal counts for `within` at least and for
/// 8/7 of it at most.
const SLICES: usize = 7;

/// Words of a caller's state: the end of its ban, its level, and the ring.
pub const WORDS: usize = 2 + 1 + (SLICES + 1).div_ceil(2);

const RING: Ring = Ring::new(SLICES + 1);

/// In place of a level, that an operator has lifted a ban, at the instant that stands where its end was. No ban begins at
/// such a level.
const LIFTED: u64 = 1_000;

/// How long no refusal counts then: they may be told late, or come of a ban of which somebody still knows.
const GRACE: Micros = SECOND;

/// More doublings than any ban begins with. A higher level was not written here, and would weigh as much
/// as a ban does.
const MOST_LEVELS: u64 = 64;

/// When a rule bans a caller, and for how long. All durations are in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ban {
    /// Refusals that lead to a ban, at least one.
    pub after: u64,
    /// The time in which they are counted.
    pub within: Micros,
    /// How long the first ban lasts.
    pub period: Micros,
    /// How long a ban lasts at most, no less than `period`.
    pub max: Micros,
    /// The time after the end of a ban in which the length of the next one halves.
    pub halve_after: Micros,
}

impl Ban {
    /// What makes it the same ban in the next configuration: the rule, and every number.
    #[must_use]
    pub fn fingerprint(&self, rule: u64) -> u64 {
        // Each step is one-to-one, so that one number that changes changes the result.
        let mix = |hash: u64, number: u64| (hash ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let Ban { after, within, period, max, halve_after } = *self;
        [after, within, period, max, halve_after].into_iter().fold(!rule, mix)
    }

    /// The monotonic instant at which the ban ends or ended; 0 if there was none.
    #[must_use]
    pub fn until(state: &[u64]) -> Micros {
        state.first().copied().unwrap_or(0)
    }

    /// Ticks that are left of a ban that ends at `until`. An end that lies much later than that of any ban is damaged
    /// and counts as none. Near enough, it looks like the end of a real ban.
    #[must_use]
    pub fn left(&self, until: Micros, now: Micros) -> Micros {
        let left = until.saturating_sub(now);
        if left > self.max.saturating_mul(2) { 0 } else { left }
    }

    /// A ban that ends at `until` begins elsewhere.
    pub fn begin(state: &mut [u64], until: Micros) {
        if let [end, level, ..] = state {
            *end = until;
            if *level == LIFTED {
                *level = 0;
            }
        }
    }

    /// Forgets all that is known of a caller, whose ban an operator lifts at `now`.
    pub fn lift(state: &mut [u64], now: Micros) {
        state.fill(0);
        state.iter_mut().zip([now, LIFTED]).for_each(|(word, new)| *word = new);
    }

    /// Counts refusals at `now`, unless it is banned, or was until a second ago when an operator lifted that. Whether a
    /// ban begins.
    pub fn count(&self, state: &mut [u64], now: Micros, refusals: u64) -> bool {
        let is_lifted = matches!(state, [at, LIFTED, ..] if now < at.saturating_add(GRACE));
        if is_lifted || self.left(Ban::until(state), now) > 0 {
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

    /// Recent refusals.
    #[must_use]
    #[inline(never)]
    pub fn recent(&self, state: &[u64], now: Micros) -> u64 {
        RING.sum(state.get(2..).unwrap_or_default(), now / self.slice())
    }

    /// How much there is to lose with a state: nothing where it has run out, and most where it is
    /// that of a ban. Who was banned lately weighs more than who never was.
    #[must_use]
    pub fn weight(&self, state: &[u64], now: Micros) -> u64 {
        if self.left(Ban::until(state), now) > 0 {
            return u64::MAX;
        }
        self.level(state, now).saturating_mul(self.after).saturating_add(self.recent(state, now))
    }

    /// How often the length of the next ban is doubled.
    fn level(&self, state: &[u64], now: Micros) -> u64 {
        let [until, level, ..] = state else { return 0 };
        if *level == LIFTED {
            return 0;
        }
        let halved = now.saturating_sub(*until) / self.halve_after.max(1);
        (*level).min(MOST_LEVELS).saturating_sub(halved)
    }

    /// Ticks of a slice.
    #[must_use]
    pub fn slice(&self) -> Micros {
        self.within.div_ceil(SLICES as u64).max(1)
    }
}
