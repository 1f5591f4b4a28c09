//! Numbers in text, without what the standard library's way costs: several times as much, for each
//! refused request.

/// Digits of the longest number to the smallest base.
const LONGEST: usize = 20;

/// Adds a number in decimal.
pub fn decimal(text: &mut String, number: u64) {
    digits(text, number, 10, 1);
}

/// Adds a number to a base from 10 to 36, in so many digits at least, up to 20.
pub fn digits(text: &mut String, number: u64, base: u32, least: usize) {
    let (mut room, mut rest, mut length) = ([b'0'; LONGEST], number, 0);
    for place in room.iter_mut().rev() {
        if rest == 0 && length >= least {
            break;
        }
        let digit = char::from_digit((rest % u64::from(base)) as u32, base);
        *place = digit.map_or(b'0', |digit| digit as u8);
        rest /= u64::from(base);
        length += 1;
    }
    let written = room.get(LONGEST - length..).and_then(|written| str::from_utf8(written).ok());
    text.push_str(written.unwrap_or_default());
}
