//! Numbers in text, without what the standard library's way costs: several times as much, for each
//! refused request.

/// Adds a number in decimal.
pub fn decimal(text: &mut String, number: u64) {
    let mut highest = 1;
    while number / highest >= 10 {
        highest *= 10;
    }
    digits(text, number, 10, highest);
}

/// Adds the digits of a number to a base of up to 36, from the one on that stands for `highest`, a power
/// of the base.
pub fn digits(text: &mut String, number: u64, base: u32, highest: u64) {
    let mut unit = highest;
    while unit > 0 {
        let digit = number / unit % u64::from(base);
        text.extend(char::from_digit(digit as u32, base));
        unit /= u64::from(base);
    }
}
