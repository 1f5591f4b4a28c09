//! How often a caller comes to this worker: what a lease is sized by, and whether one pays at all.

use crate::time::{Micros, Now, SECOND};

/// Requests are counted in spans of this length: the one under way, and the one before it.
const SPAN: Micros = SECOND / 10;

/// Requests in one to two spans from which on a lease pays, which is a hundred to two hundred a second.
/// Below that each request asks for itself, so that a caller whose few requests are spread over many
/// workers finds none of its permits leased to another.
const PAYS: u64 = 20;

/// Permits expected within a span from which on a lease pays, too.
const EXPECTED: u64 = 10;

/// The shortest time that a pace is told from.
const SHORTEST: Micros = SECOND / 80;

/// Most permits that may be expected.
const MOST: u64 = 1 << 16;

/// The demand of one caller.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Demand {
    /// When the span under way began.
    since: Micros,
    during: u64,
    before: u64,
    /// Permits that the caller is said to need in the next [`SPAN`].
    expected: u64,
}

impl Demand {
    /// The caller came once more.
    pub(crate) fn see(&mut self, now: Now) {
        let age = now.mono.saturating_sub(self.since);
        if age >= 2 * SPAN {
            (self.since, self.before, self.during) = (now.mono, 0, 0);
        } else if age >= SPAN {
            self.since += SPAN;
            (self.before, self.during) = (self.during, 0);
        }
        self.during += 1;
    }

    /// Somebody who counts more closely says that the caller will need so many permits in the next
    /// tenth of a second.
    pub(crate) fn hint(&mut self, permits: u64) {
        self.expected = permits.min(MOST);
    }

    /// Whether the caller, who has just been seen, comes so often that a lease pays.
    pub(crate) fn pays(&self) -> bool {
        self.before + self.during >= PAYS || self.expected >= EXPECTED
    }

    /// Permits that the caller needs in `ticks` at its pace, if each request takes `cost`.
    pub(crate) fn need(&self, cost: u64, ticks: Micros, now: Now) -> u64 {
        let before = if self.before > 0 { SPAN } else { 0 };
        let elapsed = (before + now.mono.saturating_sub(self.since)).max(SHORTEST);
        let seen = self.before + self.during;
        (seen.saturating_mul(ticks) / elapsed).saturating_mul(cost)
    }

    /// How many permits to ask for: what the caller needs in a [`SPAN`], or none if a lease does not
    /// pay.
    pub(crate) fn want(&mut self, cost: u64, now: Now) -> u64 {
        if !self.pays() {
            return 0;
        }
        let expected = std::mem::take(&mut self.expected);
        self.need(cost, SPAN, now).max(cost).max(expected).min(MOST.max(cost))
    }
}
