//! Local time: when a day begins.

use super::civil;
use crate::policy::{ChangeDay, Summer, Zone};

/// Seconds of a day.
const DAY: i64 = 86_400;

/// The second since the epoch from which on it is this day, or a later one, by local time: its first midnight, or
/// the change of the clocks that skips it. Days are numbered from 1 January 1970.
pub fn begins(zone: Zone, day: i64) -> i64 {
    let midnight = day * DAY;
    let standard = midnight - i64::from(zone.standard);
    let Some(summer) = zone.summer else { return standard };
    let by_summer = midnight - i64::from(summer.ahead);
    let (early, late) = (standard.min(by_summer), standard.max(by_summer));
    let changes = changes(zone.standard, summer, midnight);
    // The clocks that are further ahead reach it first, if they are in force by then.
    let last = changes.iter().filter(|change| change.at <= early).max();
    let in_force = last.map_or(zone.standard, |change| change.to);
    if midnight - i64::from(in_force) == early {
        return early;
    }
    let between = |change: &&Instant| early < change.at && change.at < late;
    changes.iter().filter(between).map(|change| change.at).min().unwrap_or(late)
}

/// The local day that is in force at a second since the epoch.
pub fn day_at(zone: Zone, second: i64) -> i64 {
    let ahead = zone.summer.map_or(zone.standard, |summer| summer.ahead.max(zone.standard));
    let latest = (second + i64::from(ahead)).div_euclid(DAY);
    if begins(zone, latest) <= second { latest } else { latest - 1 }
}

/// A change of the clocks. Where one ends summer time at the instant at which another begins it, it goes on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Instant {
    /// Seconds since the epoch.
    at: i64,
    to_summer: bool,
    /// Seconds that local time is ahead of UTC from then on.
    to: i32,
}

/// The changes of the year that a local second lies in, of the two before it, and of the one after it.
fn changes(standard: i32, summer: Summer, second: i64) -> [Instant; 8] {
    let year = civil::year_of(second.div_euclid(DAY));
    std::array::from_fn(|number| {
        let year = year - 2 + (number / 2) as i64;
        let (to_summer, change, from, to) = match number % 2 {
            0 => (true, summer.begins, standard, summer.ahead),
            _ => (false, summer.ends, summer.ahead, standard),
        };
        let at = day_of(change.day, year) * DAY + i64::from(change.at) - i64::from(from);
        Instant { at, to_summer, to }
    })
}

fn day_of(day: ChangeDay, year: i64) -> i64 {
    match day {
        ChangeDay::Weekday { month, nth, weekday } => {
            let month = 12 * year + i64::from(month) - 1;
            let first = civil::first_of(month);
            // The epoch was a Thursday.
            let ahead = (i64::from(weekday) - first - 4).rem_euclid(7);
            let nth = first + ahead + 7 * (i64::from(nth) - 1);
            if nth < civil::first_of(month + 1) { nth } else { nth - 7 }
        }
        ChangeDay::Common(number) => {
            let is_after_leap_day = number >= 60 && civil::days_of(year) == 366;
            civil::new_year(year) + i64::from(number) - 1 + i64::from(is_after_leap_day)
        }
        ChangeDay::Since(days) => civil::new_year(year) + i64::from(days),
    }
}
