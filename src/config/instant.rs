//! Instants of the wall clock, such as `until` of a plan.

use super::mapping::Allowed;
use diana_policy::time::{Micros, SECOND};
use jiff_core::civil::DateTime;
use jiff_core::tz::Offset;

/// An instant. Without an offset it would depend on the reader's time zone.
pub const INSTANT: Allowed = Allowed::Text(
    "a date and time with its offset, in quotes, such as \"2027-01-31T18:00:00Z\" or \
     \"2027-01-31T18:00:00+01:00\", from the year 2020",
    |text| parse(text).is_some(),
);

/// Earlier years are mistakes.
const FIRST: u64 = 2020;

/// An instant of RFC 3339 in whole seconds, in ticks since the epoch.
pub fn parse(text: &str) -> Option<Micros> {
    let (date, rest) = text.split_at_checked(10)?;
    let (time, offset) = rest.strip_prefix('T')?.split_at_checked(8)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let year = i16::try_from(year).ok().filter(|_| year >= FIRST)?;
    let [month, day] = small([month, day])?;
    let [hour, minute, second] = small([hour, minute, second])?;
    let local = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    let at = local.to_timestamp(Offset::from_seconds(seconds(offset)?).ok()?).ok()?;
    u64::try_from(at.as_second()).ok()?.checked_mul(SECOND)
}

/// The seconds that an offset is ahead of UTC.
fn seconds(offset: &str) -> Option<i32> {
    if offset == "Z" {
        return Some(0);
    }
    let (sign, rest) = offset.split_at_checked(1)?;
    let [hours, minutes] = numbers(rest, ':', [2, 2])?;
    if hours > 23 || minutes > 59 {
        return None;
    }
    let ahead = i32::try_from(hours * 3600 + minutes * 60).ok()?;
    match sign {
        "+" => Some(ahead),
        "-" => Some(-ahead),
        _ => None,
    }
}

/// Numbers of two digits.
fn small<const N: usize>(numbers: [u64; N]) -> Option<[i8; N]> {
    let mut small = [0; N];
    for (small, number) in small.iter_mut().zip(numbers) {
        *small = number.try_into().ok()?;
    }
    Some(small)
}

/// Numbers with these counts of digits.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[u64; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = part.parse().ok().filter(|_| is_number)?;
    }
    parts.next().is_none().then_some(numbers)
}
