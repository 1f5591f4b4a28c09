//! How far the clock of this gateway is ahead of Redis's, so that an instant there is one here.
//!
//! Every answer tells Redis's time, which lies between the instants at which the call was sent and its
//! answer came. The quickest answer of the last seconds tells it best: what differs from one answer to the
//! next is how long it was under way, and that must not move what is to happen at a certain instant.

use diana_policy::time::{Micros, SECOND};

/// How long the quickest answer is gone by, at least; and half of the time at most. Clocks of two machines
/// part by some microseconds in this time.
const LASTS: Micros = 5 * SECOND;

/// What is known of the difference.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Offset {
    /// The least difference in this span of time and in the one before it.
    least: [Option<i64>; 2],
    /// When this span began.
    since: Micros,
}

impl Offset {
    /// The instant here at which Redis's clock showed `there`, which it told in an answer to a call that was
    /// sent at `sent` and that came at `now`.
    pub(super) fn instant(&mut self, there: Micros, sent: Micros, now: Micros) -> Micros {
        if now.saturating_sub(self.since) >= LASTS {
            let [during, _] = self.least;
            (self.least, self.since) = ([None, during], now);
        }
        let difference = |here: Micros| here.wrapping_sub(there).cast_signed();
        let [during, before] = self.least;
        let known = during.into_iter().chain(before).min();
        // Redis's clock is not the one it was, if by this difference it was read before the call.
        let known = known.filter(|known| *known >= difference(sent));
        let new = difference(now);
        let least = known.map_or(new, |known| known.min(new));
        // What was known before this span began is forgotten with the one before it.
        self.least = match known {
            Some(_) => [Some(during.map_or(new, |during| during.min(new))), before],
            None => [Some(new), None],
        };
        there.wrapping_add_signed(least)
    }
}
