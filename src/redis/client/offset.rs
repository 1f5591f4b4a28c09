//! The offset of this gateway's clock from that of Redis, to convert instants of Redis.
//!
//! Every reply contains the time of Redis, which lies between the send and the arrival of the call.
//! The fastest reply of the last seconds gives the best estimate: replies differ by their time on
//! the network, which must not shift scheduled instants.

use diana_policy::time::{Micros, SECOND};

/// How long the fastest reply is used, at least; and up to twice as long. Two clocks drift apart by
/// some microseconds in this time.
const LASTS: Micros = 5 * SECOND;

/// The estimated offset.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Offset {
    /// The smallest difference in the current span and in the previous one.
    least: [Option<i64>; 2],
    /// The start of the current span.
    since: Micros,
}

impl Offset {
    /// The local instant of `there` on Redis's clock, which a reply contained. Its call was sent at
    /// `sent` and arrived at `now`.
    pub(super) fn instant(&mut self, there: Micros, sent: Micros, now: Micros) -> Micros {
        if now.saturating_sub(self.since) >= LASTS {
            let [during, _] = self.least;
            (self.least, self.since) = ([None, during], now);
        }
        let difference = |here: Micros| here.wrapping_sub(there).cast_signed();
        let [during, before] = self.least;
        let known = during.into_iter().chain(before).min();
        // If this difference puts the reply before its call, Redis's clock was changed.
        let known = known.filter(|known| *known >= difference(sent));
        let new = difference(now);
        let least = known.map_or(new, |known| known.min(new));
        // A difference of an earlier span expires with that span.
        self.least = match known {
            Some(_) => [Some(during.map_or(new, |during| during.min(new))), before],
            None => [Some(new), None],
        };
        there.wrapping_add_signed(least)
    }
}
