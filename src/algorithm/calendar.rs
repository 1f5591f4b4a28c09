//! Bounds of windows that are aligned to the wall clock.
//!
//! Windows of a fixed unit are counted from Monday, 5 January 1970, 00:00 in the rule's time zone.
//! In zones with summer time, windows of whole days begin at local midnight, and shorter ones
//! follow standard time.
//!
//! A window is identified by its end, so only the first request in a window uses the calendar.
//! Windows of one length are found by a division, months and days with a clock change by
//! `local.rs`. Redis has no calendar: each call contains the starts of the windows near the
//! gateway's time.

mod local;

use jiff_core::civil::Date;

use diana_policy::time::{DAY, Micros, SECOND, Unit};
use diana_policy::{Quota, Zone};

/// The first Monday, in days since the epoch.
const MONDAY: i32 = 4;

/// Days of the shortest month.
const FEBRUARY: Micros = 28;

/// A window, as planned on a wall clock without steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first instant after it, in ticks since the epoch.
    pub ends: Micros,
    /// Its length in ticks.
    pub length: Micros,
}

/// All windows of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows(WindowKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowKind {
    /// Windows of one length, with the end of the first window that ends after the epoch.
    Even { first: Micros, length: Micros },
    /// This number of local days.
    Days { count: i32, zone: Zone },
    /// Local months.
    Months { zone: Zone },
}

impl Windows {
    /// The windows of a quota.
    #[must_use]
    pub fn of(quota: &Quota) -> Windows {
        let (zone, length) = (quota.zone, quota.period().max(1));
        let kind = match quota.unit {
            Unit::Month => WindowKind::Months { zone },
            _ if zone.shift() > 0 && length.is_multiple_of(DAY) => {
                // The longest unit has 31 days.
                WindowKind::Days { count: (length / DAY) as i32, zone }
            }
            _ => {
                let ahead = i64::from(zone.standard) * SECOND.cast_signed();
                let local = i64::from(MONDAY) * DAY.cast_signed() - ahead;
                let first = local.rem_euclid(length.cast_signed()).cast_unsigned();
                WindowKind::Even { first, length }
            }
        };
        Windows(kind)
    }

    /// The window at `wall`. The calendar ends with the year 9999: after that, windows begin with
    /// their first request.
    #[must_use]
    pub fn at(&self, wall: Micros) -> Span {
        self.planned(wall).unwrap_or_else(|| {
            let length = self.longest();
            Span { ends: wall.saturating_add(length), length }
        })
    }

    fn planned(&self, wall: Micros) -> Option<Span> {
        match self.0 {
            WindowKind::Even { first, length } => {
                let ends = match wall.checked_sub(first) {
                    Some(since) => (wall - since % length).saturating_add(length),
                    None => first,
                };
                Some(Span { ends, length })
            }
            WindowKind::Days { count, zone } => {
                let day = local::day_at(zone, seconds(wall))?;
                let since = (day.to_unix_epoch_day().day() - MONDAY).rem_euclid(count);
                let first = day.checked_sub(since).ok()?;
                between(zone, first, first.checked_add(count).ok()?)
            }
            WindowKind::Months { zone } => {
                let day = local::day_at(zone, seconds(wall))?;
                between(zone, day.first_of_month(), day.last_of_month().tomorrow().ok()?)
            }
        }
    }

    /// Ticks of the longest window.
    #[must_use]
    pub fn longest(&self) -> Micros {
        match self.0 {
            WindowKind::Even { length, .. } => length,
            WindowKind::Days { count, zone } => u64::from(count.unsigned_abs()) * DAY + shift(zone),
            WindowKind::Months { zone } => Unit::LONGEST + shift(zone),
        }
    }

    /// Ticks of the shortest window.
    #[must_use]
    pub fn shortest(&self) -> Micros {
        match self.0 {
            WindowKind::Even { length, .. } => length,
            WindowKind::Days { count, zone } => u64::from(count.unsigned_abs()) * DAY - shift(zone),
            WindowKind::Months { zone } => FEBRUARY * DAY - shift(zone),
        }
    }

    /// The starts of consecutive windows near `wall`, for a peer with another clock and no
    /// calendar. The peer takes all earlier and later windows as long as the longest.
    #[must_use]
    pub fn edges(&self, wall: Micros) -> Vec<i64> {
        let signed = |ticks: Micros| i64::try_from(ticks).unwrap_or(i64::MAX);
        if let WindowKind::Even { first, .. } = self.0 {
            return vec![signed(first)];
        }
        // The first may have begun before the epoch.
        let begins = |span: Span| signed(span.ends) - signed(span.length);
        let this = self.at(wall);
        let before = u64::try_from(begins(this) - 1).ok().map(|it| begins(self.at(it)));
        let next = signed(self.at(this.ends).ends);
        let edges = [before, Some(begins(this)), Some(signed(this.ends)), Some(next)];
        edges.into_iter().flatten().collect()
    }
}

/// The window from one local day to another.
fn between(zone: Zone, first: Date, end: Date) -> Option<Span> {
    let (begins, ends) = (local::begins(zone, first)?, local::begins(zone, end)?);
    Some(Span { ends: ticks(ends), length: ticks(ends - begins) })
}

fn shift(zone: Zone) -> Micros {
    Micros::from(zone.shift()) * SECOND
}

fn seconds(ticks: Micros) -> i64 {
    (ticks / SECOND).cast_signed()
}

fn ticks(seconds: i64) -> Micros {
    u64::try_from(seconds).map_or(0, |seconds| seconds.saturating_mul(SECOND))
}
