//! Durations as programs in Go write them.

/// The milliseconds of a duration such as `1m30s`, or of a number of seconds.
pub(crate) fn milliseconds(text: &str) -> Option<u64> {
    if let Ok(seconds) = text.parse::<u64>() {
        return seconds.checked_mul(1000);
    }
    let (mut rest, mut sum) = (text, 0_u64);
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let value: u64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        let units = [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];
        let (unit, ms) = units.into_iter().find(|(unit, _)| rest.starts_with(unit))?;
        rest = rest.get(unit.len()..)?;
        sum = sum.checked_add(value.checked_mul(ms)?)?;
    }
    Some(sum)
}
