//! Numbers in headers, metadata and logs. The formatting of the standard library takes several
//! times as long.

#[cfg(test)]
mod tests;

use crate::time::{Micros, SECOND};

/// A number that is not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// Its whole part. Larger ones than 2⁶⁴−1 are 2⁶⁴−1.
    pub whole: u64,
    /// Its fraction, 0 … 10⁹, and above 0 if there is any.
    pub billionths: u32,
}

impl Number {
    /// Rounded up.
    #[must_use]
    pub fn rounded_up(self) -> u64 {
        self.whole.saturating_add(u64::from(self.billionths > 0))
    }
}

impl From<u64> for Number {
    fn from(whole: u64) -> Number {
        Number { whole, billionths: 0 }
    }
}

/// Parses a decimal number that is not negative, with its fraction. Digits behind the ninth of a fraction are rounded up.
pub fn exact(text: &[u8]) -> Option<Number> {
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let (whole, part) = (parts.next()?, parts.next());
    let is_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if !is_digits(whole) || part.is_some_and(|part| !is_digits(part)) {
        return None;
    }
    let add = |sum: u64, byte: &u8| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
    let billionths = part.map_or(0, |part| {
        let digits = part.iter().chain(std::iter::repeat(&b'0')).take(9);
        let more = part.iter().skip(9).any(|byte| *byte != b'0');
        digits.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')) + u32::from(more)
    });
    Some(Number { whole: whole.iter().fold(0, add), billionths })
}

/// Parses a number as [`exact`] does, also one with an exponent of ten such as `2.85e-05`, as programs write small prices. The
/// exponent only moves the point, so its size costs no more memory or time.
pub fn scientific(text: &[u8]) -> Option<Number> {
    let Some(at) = text.iter().position(|byte| matches!(byte, b'e' | b'E')) else {
        return exact(text);
    };
    let (number, rest) = text.split_at(at);
    exact(number)?;
    let power = power(rest.get(1..)?)?;
    let digits: Vec<u8> = number.iter().filter(|byte| **byte != b'.').map(|it| it - b'0').collect();
    let point = number.iter().position(|byte| *byte == b'.').unwrap_or(number.len());
    let point = i64::try_from(point).ok()?.saturating_add(power);
    // Leading zeros do not make a number large.
    let first = digits.iter().position(|digit| *digit > 0).unwrap_or(digits.len());
    let digit = |place: i64| {
        let known = usize::try_from(place).ok().and_then(|place| digits.get(place));
        u64::from(known.copied().unwrap_or(0))
    };
    let begin = i64::try_from(first).ok()?;
    let add = |sum: u64, place| sum.saturating_mul(10).saturating_add(digit(place));
    // From the twentieth digit on it is 2⁶⁴−1, whatever follows.
    let whole = match first < digits.len() {
        true => (begin..point.min(begin.saturating_add(21))).fold(0, add),
        false => 0,
    };
    let behind = point.saturating_add(9);
    let fraction = (point..behind).fold(0, add) as u32;
    let rest = usize::try_from(behind).unwrap_or(0);
    let more = digits.iter().skip(rest).any(|digit| *digit > 0);
    Some(Number { whole, billionths: fraction + u32::from(more) })
}

/// An exponent; one beyond 64 bits is the largest of its sign.
fn power(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] | digits => (1, digits),
    };
    let number = i64::try_from(self::digits(digits)?).unwrap_or(i64::MAX);
    Some(sign * number)
}

/// Parses a decimal number that is not negative, rounded up. Larger numbers than 2⁶⁴−1 become
/// 2⁶⁴−1.
pub fn decimal(text: &[u8]) -> Option<u64> {
    exact(text).map(Number::rounded_up)
}

/// Parses a decimal number with at most six digits after the point, in millionths. `None` for other
/// text, and for numbers from 10¹² on.
pub fn signed_millionths(text: &[u8]) -> Option<i64> {
    let (sign, text) = text.strip_prefix(b"-").map_or((1, text), |text| (-1, text));
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let (whole, part) = (parts.next()?, parts.next());
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if !is_number(whole) || whole.len() > 12 || part.is_some_and(|part| !is_number(part)) {
        return None;
    }
    let part = part.unwrap_or_default();
    let zeros = 6_usize.checked_sub(part.len())?;
    let digits = whole.iter().chain(part).chain(std::iter::repeat_n(&b'0', zeros));
    Some(sign * digits.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

/// Reads a 64-bit float, little-endian, that is not negative, with its fraction to the nearest billionth.
pub fn exact_float(bytes: &[u8]) -> Option<Number> {
    let number = f64::from_le_bytes(bytes.try_into().ok()?);
    if number.is_nan() || number < 0.0 {
        return None;
    }
    // The conversions saturate. A number that is infinite has no fraction.
    let fraction = number.fract();
    let billionths = if fraction > 0.0 { (fraction * 1e9).round().max(1.0) as u32 } else { 0 };
    Some(Number { whole: number as u64, billionths })
}

/// Reads a 64-bit float, little-endian, that is not negative, rounded up.
pub fn float(bytes: &[u8]) -> Option<u64> {
    exact_float(bytes).map(Number::rounded_up)
}

/// Reads a 64-bit float, little-endian, in millionths. `None` for text of eight bytes, and for
/// numbers from 10¹² on.
pub fn float_millionths(bytes: &[u8]) -> Option<i64> {
    let number = f64::from_le_bytes(bytes.try_into().ok()?);
    (!is_text(bytes) && number.abs() < 1e12).then_some((number * 1e6).round() as i64)
}

/// Returns true if eight bytes are text rather than a number.
fn is_text(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_ok_and(|text| !text.contains(char::is_control))
}

/// Parses a decimal number without a fraction. Larger numbers than 2⁶⁴−1 become 2⁶⁴−1.
pub fn digits(text: &[u8]) -> Option<u64> {
    if text.contains(&b'.') { None } else { decimal(text) }
}

/// Reads a 64-bit float, little-endian, that is whole and not negative. Eight bytes of text may
/// look like one, and are not.
pub fn whole(bytes: &[u8]) -> Option<u64> {
    let number = f64::from_le_bytes(bytes.try_into().ok()?);
    (!is_text(bytes) && number >= 0.0 && number.trunc() == number).then_some(number as u64)
}

/// From here on not every whole number is a 64-bit float.
pub const FIRST_ROUNDED: u64 = 1 << 53;

/// Returns true if this is a 64-bit float, little-endian, that stands for several whole numbers. Eight bytes of text are none.
pub fn is_rounded(bytes: &[u8]) -> bool {
    let Ok(number) = bytes.try_into().map(f64::from_le_bytes) else { return false };
    number.is_finite() && number.abs() >= FIRST_ROUNDED as f64 && !is_text(bytes)
}

/// Reads a whole number of 64 bits, little-endian, that is not negative.
pub fn integer(bytes: &[u8]) -> Option<u64> {
    u64::try_from(i64::from_le_bytes(bytes.try_into().ok()?)).ok()
}

/// Appends a number in decimal.
pub fn push_decimal(text: &mut String, number: u64) {
    text.push_str(itoa::Buffer::new().format(number));
}

/// Appends numbers as eight hexadecimal digits each.
pub fn push_hex<const N: usize>(text: &mut String, numbers: [u32; N]) {
    let digits = numbers.map(hex);
    text.push_str(str::from_utf8(digits.as_flattened()).unwrap_or_default());
}

/// The eight hexadecimal digits of a number, computed together.
fn hex(number: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Four bits for each byte.
    let mut digits = u64::from(number);
    for (bits, mask) in [(16, 0xffff_0000_ffff), (8, 0x00ff_00ff_00ff_00ff), (4, 15 * ONES)] {
        digits = (digits | digits << bits) & mask;
    }
    // 1 for each letter.
    let letters = (digits + 6 * ONES) >> 4 & ONES;
    (digits + u64::from(b'0') * ONES + letters * u64::from(b'a' - b'9' - 1)).to_be_bytes()
}

/// Appends ticks as seconds with six decimals and their unit.
pub fn push_seconds(text: &mut String, ticks: Micros) {
    const DECIMALS: usize = 6;
    let mut digits = itoa::Buffer::new();
    let is_fraction = ticks < SECOND;
    // The first digit keeps the zeros of the others.
    let digits = digits.format(if is_fraction { SECOND + ticks } else { ticks });
    let whole = digits.len().saturating_sub(DECIMALS);
    let (whole, decimals) = digits.split_at_checked(whole).unwrap_or_default();
    text.push_str(if is_fraction { "0" } else { whole });
    text.push('.');
    text.push_str(decimals);
    text.push('s');
}
