//! Local time: the start of a day.

use jiff_core::Timestamp;
use jiff_core::civil::Date;
use jiff_core::tz::posix::{Dst, TimeZone};
use jiff_core::tz::{Abbreviation, AmbiguousOffset, Offset};

use diana_policy::Zone;

/// The days of a time zone, each from the same time of the local clock to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Days {
    /// The time zone.
    pub zone: Zone,
    /// Seconds from midnight to the start of a day, less than a day.
    pub starts: u32,
}

impl Days {
    /// The start of a day, in seconds since the epoch: the first instant with this local time, or the clock change that
    /// skips it. Returns `None` beyond the year 9999.
    pub fn begins(self, day: Date) -> Option<i64> {
        let zone = time_zone(self.zone)?;
        let starts = day.at(0, 0, 0, 0).checked_add_seconds(self.starts.cast_signed()).ok()?;
        let starts = zone.to_ambiguous_timestamp(starts);
        // The first of two instants, or an instant after the change if there is none.
        let first = starts.compatible().ok()?;
        match starts.offset() {
            AmbiguousOffset::Gap { .. } => {
                let next = first.checked_add_seconds(1).ok()?;
                Some(zone.previous_transition(next)?.timestamp().as_second())
            }
            _ => Some(first.as_second()),
        }
    }

    /// The day at a second since the epoch, as the date on which it began.
    pub fn at(self, second: i64) -> Option<Date> {
        let Zone { standard, summer } = self.zone;
        let ahead = summer.map_or(standard, |summer| summer.ahead.max(standard));
        let ahead = Offset::from_seconds(ahead).ok()?;
        let since_start = Timestamp::from_second(second - i64::from(self.starts)).ok()?;
        let latest = since_start.to_datetime(ahead).date();
        if self.begins(latest)? <= second { Some(latest) } else { latest.yesterday().ok() }
    }
}

fn time_zone(zone: Zone) -> Option<TimeZone> {
    // The abbreviations of a zone are only for display.
    let unnamed = Abbreviation::statik("");
    let dst = match zone.summer {
        Some(summer) => Some(Dst {
            abbrev: unnamed.clone(),
            offset: Offset::from_seconds(summer.ahead).ok()?,
            rule: summer.rule,
        }),
        None => None,
    };
    let std_offset = Offset::from_seconds(zone.standard).ok()?;
    Some(TimeZone { std_abbrev: unnamed, std_offset, dst })
}
