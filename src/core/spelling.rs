//! What text in a request may be taken for, by whoever reads it after Diana.

pub mod cookie;
pub mod query;

use std::borrow::Cow;

/// Text after one round of percent-decoding.
pub fn decoded(text: &[u8]) -> impl Iterator<Item = u8> {
    let mut bytes = text.iter().copied();
    std::iter::from_fn(move || next_decoded(&mut bytes))
}

/// The next byte after one round of percent-decoding; a `%` without two hex digits is itself.
fn next_decoded(bytes: &mut (impl Iterator<Item = u8> + Clone)) -> Option<u8> {
    let byte = bytes.next()?;
    if byte != b'%' {
        return Some(byte);
    }
    let mut ahead = bytes.clone();
    match (ahead.next().and_then(hex), ahead.next().and_then(hex)) {
        (Some(high), Some(low)) => {
            *bytes = ahead;
            Some(high * 16 + low)
        }
        _ => Some(byte),
    }
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Text of a form in one spelling for all that upstreams take for the same: percent-decoded once, and a space
/// where it has a plus, however that is written, since to some upstreams the one means the other.
pub fn form(text: &[u8]) -> impl Iterator<Item = u8> {
    decoded(text).map(|byte| if byte == b'+' { b' ' } else { byte })
}

/// All that text of a form may be taken for: as it stands, decoded, and decoded with spaces for its pluses.
pub fn readings(text: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let has = |wanted: u8| text.contains(&wanted);
    let spaced =
        || -> Vec<u8> { text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect() };
    let plain = has(b'%').then(|| decoded(text).collect());
    let form = has(b'+').then(|| decoded(&spaced()).collect());
    std::iter::once(Cow::Borrowed(text)).chain([plain, form].into_iter().flatten().map(Cow::Owned))
}

/// A value under some name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair<'a> {
    /// The value as it is written.
    pub value: &'a [u8],
    /// Whether it stands under this name to everybody.
    pub is_plain: bool,
}
