//! Months and days of the Gregorian calendar, counted from the epoch.
//!
//! Days are numbered from 1 January 1970, months from January of the year 0. Both by H. Hinnant's
//! `days_from_civil` and `civil_from_days` (howardhinnant.github.io/date_algorithms.html), in which a year begins in
//! March.

/// Days of 400 years, after which the calendar repeats itself.
const ERA: i64 = 146_097;

/// Days from 1 March of the year 0 to the epoch.
const EPOCH: i64 = 719_468;

/// The first day of a month.
pub fn first_of(month: i64) -> i64 {
    let (year, from_march) = ((month - 2).div_euclid(12), (month - 2).rem_euclid(12));
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leaps + (153 * from_march + 2) / 5 - EPOCH
}

/// The month that a day lies in.
pub fn month_of(day: i64) -> i64 {
    let (era, day) = ((day + EPOCH).div_euclid(ERA), (day + EPOCH).rem_euclid(ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    (400 * era + year) * 12 + (5 * of_year + 2) / 153 + 2
}

/// The first day of a year.
pub fn new_year(year: i64) -> i64 {
    first_of(12 * year)
}

/// The year that a day lies in.
pub fn year_of(day: i64) -> i64 {
    month_of(day).div_euclid(12)
}

/// Days of a year.
pub fn days_of(year: i64) -> i64 {
    new_year(year + 1) - new_year(year)
}
