//! Bounds of windows that are aligned to the wall clock.
//!
//! Windows of a fixed unit are counted from Monday, 5 January 1970, 00:00 in the rule's time zone.
//! Those of whole days begin when a day starts, weeks on the day on which a week starts. In zones
//! with summer time they follow local clocks, and shorter windows follow standard time.
//!
//! A window is identified by its end, so only the first request in a window uses the calendar.
//! Windows of one length are found by a division, months, years and days with a clock change by
//! `local.rs`. Redis has no calendar: each call contains the starts of the windows near the
//! gateway's time.

mod local;

use jiff_core::civil::Date;

use diana_policy::time::{DAY, Micros, SECOND, Unit};
use diana_policy::{Quota, Starts};
use local::Days;

/// The first Monday, in days since the epoch.
const MONDAY: i32 = 4;

/// Months of a year.
const YEAR: u8 = 12;

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
    /// This number of local days, counted from the day `first` since the epoch.
    Days { days: Days, count: i32, first: i32 },
    /// One local month or twelve, from this day of the first one.
    Months { days: Days, count: u8, first: u8 },
}

impl Windows {
    /// The windows of a quota.
    #[must_use]
    pub fn of(quota: &Quota) -> Windows {
        let (zone, length) = (quota.zone, quota.period().max(1));
        let Starts { day, week, month } = quota.starts;
        let days = Days { zone, starts: day };
        let has_days = length.is_multiple_of(DAY);
        let since_monday = if quota.unit == Unit::Week { i32::from(week) } else { 0 };
        let kind = match quota.unit {
            Unit::Month => WindowKind::Months { days, count: 1, first: month },
            Unit::Year => WindowKind::Months { days, count: YEAR, first: month },
            _ if zone.shift() > 0 && has_days => {
                // The longest unit has 31 days.
                WindowKind::Days {
                    days,
                    count: (length / DAY) as i32,
                    first: MONDAY + since_monday,
                }
            }
            _ => {
                let starts = if has_days { i64::from(day) } else { 0 };
                let seconds = starts - i64::from(zone.standard);
                let local = i64::from(MONDAY + since_monday) * DAY.cast_signed()
                    + seconds * SECOND.cast_signed();
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
            WindowKind::Days { days, count, first } => {
                let day = days.at(seconds(wall))?;
                let since = (day.to_unix_epoch_day().day() - first).rem_euclid(count);
                let begin = day.checked_sub(since).ok()?;
                between(days, begin, begin.checked_add(count).ok()?)
            }
            WindowKind::Months { days, count, first } => {
                let day = days.at(seconds(wall))?;
                let (year, month) = (i32::from(day.year()), i32::from(day.month()));
                let this = year * i32::from(YEAR) + month - 1;
                let this = this - this.rem_euclid(i32::from(count));
                // Before its first day, a month belongs to the window of the previous one.
                let has_begun = nth_day(this, first)? <= day;
                let begin = if has_begun { this } else { this - i32::from(count) };
                let end = nth_day(begin + i32::from(count), first)?;
                between(days, nth_day(begin, first)?, end)
            }
        }
    }

    /// Ticks of the longest window.
    #[must_use]
    pub fn longest(&self) -> Micros {
        match self.0 {
            WindowKind::Even { length, .. } => length,
            WindowKind::Days { days, count, .. } => {
                u64::from(count.unsigned_abs()) * DAY + shift(days)
            }
            WindowKind::Months { days, count: YEAR, .. } => Unit::Year.micros() + shift(days),
            WindowKind::Months { days, .. } => Unit::Month.micros() + shift(days),
        }
    }

    /// Ticks of the shortest window.
    #[must_use]
    pub fn shortest(&self) -> Micros {
        match self.0 {
            WindowKind::Even { length, .. } => length,
            WindowKind::Days { days, count, .. } => {
                u64::from(count.unsigned_abs()) * DAY - shift(days)
            }
            WindowKind::Months { days, count: YEAR, .. } => 365 * DAY - shift(days),
            WindowKind::Months { days, .. } => 28 * DAY - shift(days),
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
fn between(days: Days, first: Date, end: Date) -> Option<Span> {
    let (begins, ends) = (days.begins(first)?, days.begins(end)?);
    Some(Span { ends: ticks(ends), length: ticks(ends - begins) })
}

/// A day of a month, or the last one if the month is shorter. Months are counted from the year 0.
fn nth_day(month: i32, day: u8) -> Option<Date> {
    let (year, month) = (month.div_euclid(YEAR.into()), month.rem_euclid(YEAR.into()));
    let (year, month, day) =
        (year.try_into().ok()?, (month + 1).try_into().ok()?, day.try_into().ok()?);
    Date::new_constrain(year, month, day).ok()
}

fn shift(days: Days) -> Micros {
    Micros::from(days.zone.shift()) * SECOND
}

fn seconds(ticks: Micros) -> i64 {
    (ticks / SECOND).cast_signed()
}

fn ticks(seconds: i64) -> Micros {
    u64::try_from(seconds).map_or(0, |seconds| seconds.saturating_mul(SECOND))
}
