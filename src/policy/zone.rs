//! Time zones and the starts of periods as plain numbers.

use jiff_core::tz::posix::Rule;

/// The offset of local time from UTC, in seconds from −14 hours to 14 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Zone {
    /// The offset of standard time.
    pub standard: i32,
    /// Summer time, where it exists.
    pub summer: Option<Summer>,
}

impl Zone {
    /// UTC.
    pub const UTC: Zone = Zone { standard: 0, summer: None };

    /// A zone without summer time, `seconds` ahead of UTC.
    #[must_use]
    pub const fn ahead(seconds: i32) -> Zone {
        Zone { standard: seconds, summer: None }
    }

    /// Maximum difference of a day from 24 hours in seconds, at most 12 hours.
    #[must_use]
    pub fn shift(&self) -> u32 {
        self.summer.map_or(0, |summer| summer.ahead.abs_diff(self.standard))
    }
}

/// Summer time for a part of each year. It may be behind standard time, as in Irish law.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summer {
    /// Offset from UTC in seconds.
    pub ahead: i32,
    /// Its beginning, in standard time, and its end, in summer time.
    pub rule: Rule,
}

/// Where windows of whole days begin, in local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Starts {
    /// Seconds from midnight to the start of a day, less than a day.
    pub day: u32,
    /// Days from Monday to the first day of a week, 0 ..= 6.
    pub week: u8,
    /// The first day of a month, 1 ..= [`Starts::LAST`]. In shorter months it is the last day.
    pub month: u8,
}

impl Starts {
    /// The latest first day of a month.
    pub const LAST: u8 = 31;

    /// Midnight, Monday, and the first day of the month.
    pub const PLAIN: Starts = Starts { day: 0, week: 0, month: 1 };
}
