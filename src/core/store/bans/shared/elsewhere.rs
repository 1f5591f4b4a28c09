//! Bans of a gateway whose refusals are counted elsewhere, for all gateways.

use super::{Known, Shared, set};
use crate::key::Key;
use crate::time::{Micros, SECOND};

impl Shared {
    /// The same, with refusals that somebody else counts, where bans may be lifted if `lifts`.
    pub(crate) fn counted_elsewhere(mut self, lifts: bool) -> Shared {
        (self.hands_out, self.lifts) = (true, lifts);
        self
    }

    /// Refusals that somebody else is to count.
    pub(crate) fn take_refusals(&mut self) -> Vec<(Key, u64)> {
        std::mem::take(&mut self.refusals)
    }

    /// Whether a caller who keeps coming is to be looked for elsewhere.
    pub(crate) fn is_worth_a_look(&mut self, key: Key, now: Micros) -> bool {
        let place = self.claim(key, now);
        let Some(line) = self.lines.get_mut(place) else { return false };
        let looks = now.saturating_sub(line.looked) >= SECOND
            && (self.lifts || self.ban.left(line.until, now) == 0);
        if looks {
            line.looked = now;
        }
        looks
    }

    /// Takes what somebody else says about a caller. Ticks for which it is still banned.
    pub(crate) fn hear(&mut self, key: Key, known: Known, now: Micros) -> Micros {
        let until = now.saturating_add(known.left);
        let left = self.ban.left(until, now);
        let place = self.claim(key, now);
        let known_until = self.lines.get(place).map_or(0, |line| line.until);
        let was_known = self.ban.left(known_until, now) > 0;
        // Answers take different times on their way, so that no two say the same instant.
        let is_other = known_until.abs_diff(until) > SECOND;
        // A look counts nothing, and does not tell.
        let line = self.lines.get_mut(place).filter(|_| known.recent > 0);
        line.into_iter().for_each(|line| line.recent = known.recent);
        if left > 0 && (!was_known || is_other) {
            self.change(key, set::Change::Ban(until), now);
            self.begun += u64::from(known.begins);
            self.learn(Some(until), now);
            let (line, epoch) = (self.lines.get_mut(place).into_iter(), self.record.epoch);
            line.for_each(|line| (line.until, line.epoch) = (until, epoch));
        }
        if left == 0 && was_known && self.lifts {
            self.set_by_operator(key, 0, now);
        }
        left
    }
}
