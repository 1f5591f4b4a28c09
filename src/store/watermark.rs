//! The latest instant at which a store dropped state. It never decides at an earlier one.

use diana_policy::time::{Micros, Now};

/// No wall clock exceeds this for some thousands of years.
const LATEST: Micros = 1 << 57;

/// The earliest instant of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Watermark(pub(super) Now);

impl Watermark {
    /// The instant of a decision: `now`, or the watermark if that is later. `window` is the maximum
    /// lifetime of a caller's state on the monotonic clock.
    #[inline]
    pub(super) fn no_earlier(self, now: Now, window: Micros) -> Now {
        let Now { mono, wall } = self.0;
        // One window later, a dropped window has ended by the monotonic clock, whatever the wall
        // clock shows.
        if now.mono >= mono.saturating_add(window) {
            return now;
        }
        // A shared watermark may be corrupt. A decision at it would end every window, or none.
        let corrupt = mono > now.mono.saturating_add(window) || wall > LATEST;
        if corrupt { now } else { now.max(self.0) }
    }

    /// Records that state was dropped at `now`.
    pub(super) fn raise(&mut self, now: Now) {
        self.0 = self.0.max(now);
    }
}
