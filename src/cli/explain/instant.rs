//! Instants as they are written.

use std::time::{SystemTime, UNIX_EPOCH};

use diana_core::time::{Micros, Now, SECOND};

const ALLOWED: &str = "an instant in UTC such as 2026-11-24T21:38:34Z, from 1970 on";

/// The instant of a text, or now.
///
/// # Errors
/// If the text is none.
pub fn now(at: Option<&str>) -> Result<Now, String> {
    let wall = match at {
        Some(text) => {
            let wrong = || format!("found `{}`, allowed: {ALLOWED}", crate::text::plain(text));
            parse(text).ok_or_else(wrong)?
        }
        None => wall(),
    };
    Ok(Now { mono: wall, wall })
}

#[expect(clippy::disallowed_methods, reason = "an operator who names no instant means now")]
fn wall() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Micros::try_from(since.as_micros()).unwrap_or(Micros::MAX)
}

fn parse(text: &str) -> Option<Micros> {
    let (date, time) = text.strip_suffix('Z')?.split_once(['T', ' '])?;
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let fits = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && hour < 24
        && minute < 60
        && second < 60;
    if !fits || day == 0 || day > days_in(year, month) {
        return None;
    }
    Some((days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second) * SECOND)
}

fn numbers(text: &str, between: char) -> Option<[u64; 3]> {
    let parts: Vec<u64> = text
        .split(between)
        .map(|part| {
            part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten()
        })
        .collect::<Option<_>>()?;
    parts.try_into().ok()
}

fn days_in(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1 January 1970.
/// Source: <https://howardhinnant.github.io/date_algorithms.html#days_from_civil>
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}
