//! Instants as logs write them.

use diana_policy::time::{DAY, Micros, SECOND};
use jiff_core::civil::Date;

#[cfg(test)]
mod tests;

const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// An instant of ISO 8601 (`2026-11-24T21:38:34.123Z`), of the common log format
/// (`24/Nov/2026:21:38:34 +0000`), or in seconds since the epoch. Without a zone it is taken for
/// UTC.
pub fn parse(text: &[u8]) -> Option<Micros> {
    match text.get(2) {
        Some(b'/') => common(text),
        _ if text.get(4) == Some(&b'-') => iso(text),
        _ => epoch(text),
    }
}

fn iso(text: &[u8]) -> Option<Micros> {
    let day = days(number(text.get(..4)?)?, number(text.get(5..7)?)?, number(text.get(8..10)?)?)?;
    let of_day = clock(text.get(11..19)?)?;
    let mut rest = text.get(19..)?;
    let mut fraction = 0;
    if let Some((b'.' | b',', digits)) = rest.split_first() {
        let length = digits.iter().take_while(|digit| digit.is_ascii_digit()).count();
        fraction = micros(digits.get(..length)?)?;
        rest = digits.get(length..)?;
    }
    (day * DAY + of_day * SECOND + fraction).checked_add_signed(-offset(rest)?)
}

fn common(text: &[u8]) -> Option<Micros> {
    let month = MONTHS.iter().position(|name| text.get(3..6) == Some(name))?;
    let day = days(number(text.get(7..11)?)?, month as u64 + 1, number(text.get(..2)?)?)?;
    let of_day = clock(text.get(12..20)?)?;
    let zone = text.get(20..)?.trim_ascii();
    (day * DAY + of_day * SECOND).checked_add_signed(-offset(zone)?)
}

fn epoch(text: &[u8]) -> Option<Micros> {
    let dot = text.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = text.split_at(dot.unwrap_or(text.len()));
    // A larger number, in the year 5000 or later, is no number of seconds.
    let seconds = number(whole).filter(|_| (1..=11).contains(&whole.len()))?;
    Some(seconds * SECOND + micros(fraction.get(1..).unwrap_or_default())?)
}

/// Microseconds that an offset is ahead of UTC.
fn offset(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text.split_first() {
        None | Some((b'Z', [])) => return Some(0),
        Some((b'+', digits)) => (1, digits),
        Some((b'-', digits)) => (-1, digits),
        Some(_) => return None,
    };
    let (hours, minutes) = match digits {
        [a, b] => (number(&[*a, *b])?, 0),
        [a, b, c, d] | [a, b, b':', c, d] => (number(&[*a, *b])?, number(&[*c, *d])?),
        _ => return None,
    };
    Some(sign * ((hours * 60 + minutes) * 60 * SECOND) as i64)
}

fn clock(text: &[u8]) -> Option<u64> {
    let [h1, h2, b':', m1, m2, b':', s1, s2] = text else { return None };
    let (hour, minute, second) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?, number(&[*s1, *s2])?);
    // A leap second is one more of the minute.
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// A fraction of a second, by its digits.
fn micros(digits: &[u8]) -> Option<Micros> {
    let six = digits.iter().chain(b"000000").take(6);
    six.clone()
        .all(u8::is_ascii_digit)
        .then(|| six.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// A number of at most nineteen digits.
pub fn number(text: &[u8]) -> Option<u64> {
    let is_number = (1..=19).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| text.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// Days since 1 January 1970, from then on.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let date = Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?);
    u64::try_from(date.ok()?.to_unix_epoch_day().day()).ok()
}
