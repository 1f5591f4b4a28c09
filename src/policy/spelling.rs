//! What text in a request may be taken for, by whoever reads it after Diana.

pub mod cookie;
pub mod header;
pub mod metadata;
pub mod query;

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// Text after one round of percent-decoding; a `%` without two hex digits is itself.
pub fn decoded(text: &[u8]) -> impl Iterator<Item = u8> {
    percent_decode(text)
}

/// The byte of the percent-encoding that `text` begins with, and the text behind it.
fn escape(text: &[u8]) -> Option<(u8, &[u8])> {
    match text {
        [b'%', high, low, tail @ ..] => Some((hex(*high)? * 16 + hex(*low)?, tail)),
        _ => None,
    }
}

/// Text percent-decoded, if all readers that decode it take it for the same. They do where only data is encoded that
/// cannot stand as it is: `%`, characters outside ASCII, and the bytes that `is_data` accepts. A reader that decodes twice,
/// takes broken UTF-8 for characters or stops at a control character may find another text.
pub fn only_reading(text: &[u8], is_data: impl Fn(u8) -> bool) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        let (byte, tail) = if first == b'%' { escape(rest)? } else { (first, tail) };
        if first == b'%' && byte.is_ascii() && byte != b'%' && !is_data(byte) {
            return None;
        }
        plain.push(byte);
        rest = tail;
    }
    let has_escape = plain.windows(3).any(|at| escape(at).is_some());
    let has_control = std::str::from_utf8(&plain).map_or(true, |it| it.contains(char::is_control));
    (!has_escape && !has_control).then_some(plain)
}

/// Name or value of a query parameter or a cookie percent-decoded, if readers agree about it. A query's data may need every
/// reserved character encoded. Most libraries encode cookies in the same way (`encodeURIComponent`), though few characters
/// require it there.
#[must_use]
pub fn only_component(text: &[u8]) -> Option<Vec<u8>> {
    only_reading(text, |byte| !is_unreserved(byte))
}

/// Returns true if a URI means the same with this byte encoded or not (RFC 3986, section 2.3), so nothing requires that it
/// is encoded.
#[must_use]
pub fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Text of a form in one spelling for all that upstreams take for the same: percent-decoded once, and a space
/// where it has a plus, however that is written, since to some upstreams the one means the other.
pub fn form(text: &[u8]) -> impl Iterator<Item = u8> {
    decoded(text).map(|byte| if byte == b'+' { b' ' } else { byte })
}

/// Text decoded for as long as there is something to decode, with spaces for its pluses: the same, however often it was
/// encoded.
#[must_use]
pub fn fully_decoded(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    for &byte in text {
        plain.push(byte);
        while let Some(start) = plain.len().checked_sub(3)
            && let Some((byte, _)) = plain.get(start..).and_then(escape)
        {
            plain.truncate(start);
            plain.push(byte);
        }
    }
    plain.iter_mut().filter(|byte| **byte == b'+').for_each(|byte| *byte = b' ');
    plain
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

/// Returns true if a key of a query or a cookie may be taken for `name`. PHP takes spaces off its beginning and reads it up
/// to a NUL; it and others read it up to a `[`, and put the value into an array of that name.
#[must_use]
pub fn may_name(key: &[u8], name: &[u8]) -> bool {
    let read = |key| form(key).skip_while(|&byte| byte == b' ').take_while(|&byte| byte != 0);
    read(key).eq(read(name))
        || read(key).take_while(|&byte| byte != b'[').eq(read(name))
        || read(key).eq(name.iter().copied())
}

/// A value under some name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair<'a> {
    /// The value as it is written.
    pub value: &'a [u8],
    /// Whether it stands under this name to everybody.
    pub is_plain: bool,
    /// Whether it does to every reader that decodes names, since the name is encoded as it must be.
    pub is_encoded: bool,
}

impl Pair<'_> {
    /// Whether it stands under this name to every reader that decodes names.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.is_plain || self.is_encoded
    }
}
