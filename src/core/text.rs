//! Numbers in text, without what the standard library's way costs: several times as much, for each
//! refused request.

/// Digits of the longest number in hexadecimal.
const LONGEST: usize = 16;

/// Adds a number in decimal.
pub fn decimal(text: &mut String, number: u64) {
    text.push_str(itoa::Buffer::new().format(number));
}

/// Adds what is below a million, in six digits.
pub fn millionths(text: &mut String, number: u64) {
    let mut digits = itoa::Buffer::new();
    // A digit before them keeps the zeros.
    let longer = digits.format(1_000_000 + number % 1_000_000);
    text.push_str(longer.get(1..).unwrap_or_default());
}

/// Adds a number in hexadecimal, in so many digits at least, up to 16.
pub fn hexadecimal(text: &mut String, number: u64, least: usize) {
    let needed = (u64::BITS - number.leading_zeros()).div_ceil(4) as usize;
    let (mut digits, length) = ([0; LONGEST], needed.max(least).min(LONGEST));
    let mut shift = 4 * length;
    for place in digits.iter_mut().take(length) {
        shift -= 4;
        let digit = (number >> shift) as u8 & 15;
        *place = digit + if digit < 10 { b'0' } else { b'a' - 10 };
    }
    let written = digits.get(..length).and_then(|written| str::from_utf8(written).ok());
    text.push_str(written.unwrap_or_default());
}
