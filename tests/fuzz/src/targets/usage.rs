//! Any bytes in a header are an amount of usage or none. An exponent moves the point, as in the spelling without one.

use diana_policy::number::{exact, scientific};

/// Larger exponents would make the other spelling too long.
const FAR: isize = 5_000;

pub fn run(input: &[u8]) {
    let found = crate::bounded::to(2 * input.len() + (4 << 10), || scientific(input));
    let mut parts = input.splitn(2, |byte| matches!(byte, b'e' | b'E'));
    let (number, power) = (parts.next().unwrap_or_default(), parts.next());
    let Some(power) = power else { return assert_eq!(found, exact(input)) };
    let power = str::from_utf8(power).ok().and_then(|power| power.parse::<isize>().ok());
    let (Some(power), Some(_)) = (power, exact(number)) else { return };
    if power.abs() > FAR {
        return assert!(found.is_some());
    }
    let point = number.iter().position(|byte| *byte == b'.').unwrap_or(number.len());
    let zeros = vec![b'0'; power.unsigned_abs() + 1];
    let digits = number.iter().copied().filter(|byte| *byte != b'.');
    let mut moved: Vec<u8> = zeros.iter().copied().chain(digits).chain(zeros.clone()).collect();
    moved.insert((zeros.len() + point).saturating_add_signed(power), b'.');
    assert_eq!(found, exact(&moved), "{}", input.escape_ascii());
}
