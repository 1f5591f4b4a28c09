//! What time it is by local clocks, as plain numbers.

use jiff_core::tz::posix::Rule;

/// How far local time is ahead of UTC, in seconds from −14 hours to 14 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Zone {
    /// By standard time.
    pub standard: i32,
    /// By summer time, where there is one.
    pub summer: Option<Summer>,
}

impl Zone {
    /// No time of its own.
    pub const UTC: Zone = Zone { standard: 0, summer: None };

    /// A zone without summer time, so many seconds ahead of UTC.
    #[must_use]
    pub const fn ahead(seconds: i32) -> Zone {
        Zone { standard: seconds, summer: None }
    }

    /// Seconds by which a day may be longer or shorter than 24 hours, at most 12 hours.
    #[must_use]
    pub fn shift(&self) -> u32 {
        self.summer.map_or(0, |summer| summer.ahead.abs_diff(self.standard))
    }
}

/// Time that is in force for a part of each year. It may be behind standard time, as in Ireland by its own law.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summer {
    /// Seconds that it is ahead of UTC.
    pub ahead: i32,
    /// When it begins, by standard time, and when it ends, by summer time.
    pub rule: Rule,
}
