//! The latest instant at which a store dropped state: it judges nothing at an earlier one.

use diana_policy::time::{Micros, Now};

/// No wall clock shows more, some thousands of years from now.
const LATEST: Micros = 1 << 57;

/// The instant below which a store judges as at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Watermark(pub(super) Now);

impl Watermark {
    /// The instant to judge at: `now`, or the watermark if that is later. `window` is how long state of
    /// one caller lives at most by the monotonic clock.
    #[inline]
    pub(super) fn judging(self, now: Now, window: Micros) -> Now {
        let Now { mono, wall } = self.0;
        // A window that was dropped has ended by the monotonic clock one window later, wherever the
        // wall clock is by then.
        if now.mono >= mono.saturating_add(window) {
            return now;
        }
        // What others can write to may say anything: judged there, every window would have ended, or
        // none would ever end.
        let corrupt = mono > now.mono.saturating_add(window) || wall > LATEST;
        if corrupt { now } else { now.max(self.0) }
    }

    /// State was dropped at `now`.
    pub(super) fn raise(&mut self, now: Now) {
        self.0 = self.0.max(now);
    }
}
