//! How numbers of permits are written in headers and metadata.

/// A number in decimals that is not negative, rounded up; the largest one if there is no such.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
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

/// A 64-bit float, the lowest byte first, that is not negative, rounded up.
pub(crate) fn float(bytes: &[u8]) -> Option<u64> {
    let number = f64::from_le_bytes(bytes.try_into().ok()?);
    // What is too large becomes the largest one.
    (number >= 0.0).then_some(number.ceil() as u64)
}

/// A 64-bit float, the lowest byte first, that is a whole number from 0 on and known to the last digit.
pub(crate) fn whole(bytes: &[u8]) -> Option<u64> {
    let number = float(bytes).filter(|number| *number < 1 << 53)?;
    ((number as f64).to_le_bytes() == bytes).then_some(number)
}

/// A whole number of 64 bits, the lowest byte first, that is not negative.
pub(crate) fn integer(bytes: &[u8]) -> Option<u64> {
    u64::try_from(i64::from_le_bytes(bytes.try_into().ok()?)).ok()
}
