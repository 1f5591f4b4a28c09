//! Local time: the start of a day.

use jiff_core::Timestamp;
use jiff_core::civil::Date;
use jiff_core::tz::posix::{Dst, TimeZone};
use jiff_core::tz::{Abbreviation, AmbiguousOffset, Offset};

use diana_policy::Zone;

/// The start of a local day, in seconds since the epoch: its first midnight, or the clock change
/// that skips it. Returns `None` beyond the year 9999.
pub fn begins(zone: Zone, day: Date) -> Option<i64> {
    let zone = time_zone(zone)?;
    let midnight = zone.to_ambiguous_timestamp(day.at(0, 0, 0, 0));
    // The first of two midnights, or an instant after the change if there is none.
    let first = midnight.compatible().ok()?;
    match midnight.offset() {
        AmbiguousOffset::Gap { .. } => {
            let next = first.checked_add_seconds(1).ok()?;
            Some(zone.previous_transition(next)?.timestamp().as_second())
        }
        _ => Some(first.as_second()),
    }
}

/// The local day at a second since the epoch.
pub fn day_at(zone: Zone, second: i64) -> Option<Date> {
    let ahead = zone.summer.map_or(zone.standard, |summer| summer.ahead.max(zone.standard));
    let ahead = Offset::from_seconds(ahead).ok()?;
    let latest = Timestamp::from_second(second).ok()?.to_datetime(ahead).date();
    if begins(zone, latest)? <= second { Some(latest) } else { latest.yesterday().ok() }
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
