//! The possible readings of text in a request, by all software that may read it after Diana.

pub mod cookie;
pub mod header;
pub mod metadata;
pub mod query;

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use percent_encoding::percent_decode;

/// Text after one round of percent-decoding. A `%` without two hex digits stays as it is.
pub fn decoded(text: &[u8]) -> impl Iterator<Item = u8> {
    percent_decode(text)
}

/// The byte of the percent-encoding at the beginning of `text`, and the text after it.
fn escape(text: &[u8]) -> Option<(u8, &[u8])> {
    match text {
        [b'%', high, low, tail @ ..] => Some((hex(*high)? * 16 + hex(*low)?, tail)),
        _ => None,
    }
}

/// Percent-decoded text, if all readers that decode it obtain the same. This holds if only data
/// that requires encoding is encoded: `%`, characters outside ASCII, and the bytes that `is_data`
/// accepts. A reader that decodes twice, interprets broken UTF-8 as characters or stops at a
/// control character may obtain another text.
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

/// The percent-decoded name or value of a query parameter or a cookie, if readers agree on it. In a
/// query, all reserved characters may require encoding. Most libraries encode cookies in the same
/// way (`encodeURIComponent`), though few characters require it there.
#[must_use]
pub fn only_component(text: &[u8]) -> Option<Vec<u8>> {
    only_reading(text, |byte| !is_unreserved(byte))
}

/// Returns true if a URI has the same meaning with this byte encoded or not (RFC 3986, section
/// 2.3), so that encoding is never required.
#[must_use]
pub fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// One spelling for all form texts that upstreams treat as equal: percent-decoded once, with a
/// space for each plus in any encoding, since some upstreams treat them as equal.
pub fn form(text: &[u8]) -> impl Iterator<Item = u8> {
    decoded(text).map(|byte| if byte == b'+' { b' ' } else { byte })
}

/// Text decoded repeatedly until no escape is left, with spaces in place of pluses. The result does
/// not depend on the number of encodings.
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

/// All readings of form text: as written, decoded, and decoded with spaces in place of pluses.
pub fn readings(text: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let has = |wanted: u8| text.contains(&wanted);
    let spaced =
        || -> Vec<u8> { text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect() };
    let plain = has(b'%').then(|| decoded(text).collect());
    let form = has(b'+').then(|| decoded(&spaced()).collect());
    std::iter::once(Cow::Borrowed(text)).chain([plain, form].into_iter().flatten().map(Cow::Owned))
}

/// Returns true if a reader may treat a key of a query or a cookie as `name`. PHP strips leading
/// spaces and reads up to a NUL. PHP and others read up to a `[`, and put the value into an array
/// of that name.
#[must_use]
pub fn may_name(key: &[u8], name: &[u8]) -> bool {
    let read = |key| form(key).skip_while(|&byte| byte == b' ').take_while(|&byte| byte != 0);
    read(key).eq(read(name))
        || read(key).take_while(|&byte| byte != b'[').eq(read(name))
        || read(key).eq(name.iter().copied())
}

/// A value with a possible name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair<'a> {
    /// The value as written.
    pub value: &'a [u8],
    /// Whether all readers find it under this name.
    pub is_plain: bool,
    /// Whether all readers that decode names find it, since only what requires encoding is encoded.
    pub is_encoded: bool,
}

impl Pair<'_> {
    /// Returns true if all readers that decode names find it under this name.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.is_plain || self.is_encoded
    }
}

/// Parses an address with or without port. IPv4-mapped IPv6 becomes IPv4. `None` if the text is not
/// an address.
#[must_use]
pub fn address(text: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(text).ok()?;
    let address = text.parse::<SocketAddr>().map(|socket| socket.ip());
    Some(address.or_else(|_| text.parse::<IpAddr>()).ok()?.to_canonical())
}
