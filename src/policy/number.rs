//! Numbers in headers, metadata and logs. The formatting of the standard library takes several
//! times as long: a tenth of the time of a refused request.

use crate::time::{Micros, SECOND};

/// Parses a decimal number that is not negative, rounded up. Larger numbers than 2⁶⁴−1 become
/// 2⁶⁴−1.
pub fn decimal(text: &[u8]) -> Option<u64> {
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let (whole, part) = (parts.next()?, parts.next());
    let is_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if !is_digits(whole) || part.is_some_and(|part| !is_digits(part)) {
        return None;
    }
    let add = |sum: u64, byte: &u8| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
    let more = part.is_some_and(|part| part.iter().any(|byte| *byte != b'0'));
    Some(whole.iter().fold(0, add).saturating_add(u64::from(more)))
}

/// Reads a 64-bit float, little-endian, that is not negative, rounded up.
pub fn float(bytes: &[u8]) -> Option<u64> {
    let number = f64::from_le_bytes(bytes.try_into().ok()?);
    // The conversion saturates.
    (number >= 0.0).then_some(number.ceil() as u64)
}

/// Parses a decimal number without a fraction. Larger numbers than 2⁶⁴−1 become 2⁶⁴−1.
pub fn digits(text: &[u8]) -> Option<u64> {
    if text.contains(&b'.') { None } else { decimal(text) }
}

/// Reads a 64-bit float, little-endian, that is whole and not negative. Eight bytes of text may
/// look like one, and are not.
pub fn whole(bytes: &[u8]) -> Option<u64> {
    let number = f64::from_le_bytes(bytes.try_into().ok()?);
    let is_text = str::from_utf8(bytes).is_ok_and(|text| !text.contains(char::is_control));
    (!is_text && number >= 0.0 && number.trunc() == number).then_some(number as u64)
}

/// Reads a whole number of 64 bits, little-endian, that is not negative.
pub fn integer(bytes: &[u8]) -> Option<u64> {
    u64::try_from(i64::from_le_bytes(bytes.try_into().ok()?)).ok()
}

/// Appends a number in decimal.
pub fn push_decimal(text: &mut String, number: u64) {
    if number > 9 {
        push_decimal(text, number / 10);
    }
    push_digit(text, (number % 10) as u8);
}

/// Appends a number as 16 hexadecimal digits.
pub fn push_hex(text: &mut String, number: u64) {
    for at in (0..16).rev() {
        push_digit(text, (number >> (4 * at)) as u8 & 15);
    }
}

/// Appends ticks as seconds with six decimals.
pub fn push_seconds(text: &mut String, ticks: Micros) {
    push_decimal(text, ticks / SECOND);
    text.push('.');
    let mut place = SECOND;
    while place > 1 {
        place /= 10;
        push_digit(text, (ticks / place % 10) as u8);
    }
}

fn push_digit(text: &mut String, digit: u8) {
    text.push(char::from(digit + if digit < 10 { b'0' } else { b'a' - 10 }));
}
