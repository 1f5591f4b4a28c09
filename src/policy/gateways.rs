//! How many gateways share the limits of the fleet, as a server reports it.

use crate::time::{Micros, SECOND};

/// The most gateways of a fleet.
pub const MOST_GATEWAYS: u64 = 10_000;

/// How long a server must report fewer gateways, without a failure, until that number is assumed.
/// Redis forgets gateways that cannot reach it, and all of them if it loses its data.
const STEADY: Micros = 5 * SECOND;

/// The number of gateways by the reports so far: more count at once, since each share is then smaller,
/// and fewer after a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GatewayCount {
    /// The number; 0 before the first report.
    pub known: u64,
    /// Since when fewer gateways are reported, and how many at most; zeros if they are not.
    fewer: (Micros, u64),
}

impl GatewayCount {
    /// The number of words.
    pub const WORDS: usize = 3;

    /// A count from words of shared data.
    #[must_use]
    pub fn of([known, since, fewer]: [u64; GatewayCount::WORDS]) -> GatewayCount {
        GatewayCount { known, fewer: (since, fewer) }
    }

    /// The words for shared data.
    #[must_use]
    pub fn words(self) -> [u64; GatewayCount::WORDS] {
        [self.known, self.fewer.0, self.fewer.1]
    }

    /// Takes a report. Before the first one, `least` gateways are assumed.
    pub fn count(&mut self, reported: u64, least: u64, now: Micros) {
        let known = if self.known == 0 { least } else { self.known };
        let (since, fewer) = match self.fewer {
            (since @ 1.., fewer) if since <= now => (since, fewer.max(reported)),
            _ => (now.max(1), reported),
        };
        self.known = known.max(reported);
        self.fewer = (since, fewer);
        if reported >= known {
            self.fewer = (0, 0);
        } else if now.saturating_sub(since) >= STEADY {
            self.known = fewer;
            self.fewer = if fewer > reported { (now, reported) } else { (0, 0) };
        }
    }

    /// Records that the server did not answer.
    pub fn miss(&mut self) {
        self.fewer = (0, 0);
    }
}
