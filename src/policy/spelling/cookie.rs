//! Cookies.

use std::borrow::Cow;

use super::{Pair, may_name, only_component};

/// Returns true if `name` is a valid cookie name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.bytes().any(|byte| byte <= b' ' || b"=;,\x7f".contains(&byte))
}

/// The possible values of a cookie in one header. Some upstreams percent-decode names and values.
pub fn pairs<'a>(header: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = Pair<'a>> {
    header.split(|&byte| byte == b';').filter_map(move |pair| {
        let equals = pair.iter().position(|&byte| byte == b'=')?;
        let (key, value) = pair.split_at_checked(equals)?;
        // Some readers strip only this space.
        let key = key.strip_prefix(b" ").unwrap_or(key);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        may_name(key.trim_ascii(), name).then(|| Pair {
            value,
            is_plain: key == name,
            is_encoded: only_component(key).is_some_and(|key| key == name),
        })
    })
}

/// The possible values without the surrounding quotes. If the quotes contain escapes or are
/// unbalanced, upstreams differ, and there are two values.
pub fn unquoted(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let inner = value.strip_prefix(b"\"");
    let whole = inner.and_then(|inner| inner.strip_suffix(b"\""));
    let unclear = inner.filter(|inner| whole.is_none() || inner.contains(&b'\\'));
    std::iter::once(whole.unwrap_or(value)).chain(unclear)
}

/// All readings of a cookie's value before decoding: with quotes, without them, and with resolved
/// escapes.
pub fn readings(value: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let inner = value.strip_prefix(b"\"");
    let inner = inner.map(|inner| inner.strip_suffix(b"\"").unwrap_or(inner));
    let escaped = inner.filter(|inner| inner.contains(&b'\\')).map(unescaped);
    let unquoted = unquoted(value).filter(move |reading| reading.len() < value.len());
    let as_written = std::iter::once(value).chain(unquoted).map(Cow::Borrowed);
    as_written.chain(escaped.map(Cow::Owned))
}

/// Resolves escapes: `\` and three octal digits to a byte, any other `\` to the byte after it.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match (byte, tail) {
            (b'\\', [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', tail @ ..]) => {
                plain.push((high - b'0') * 64 + (middle - b'0') * 8 + (low - b'0'));
                rest = tail;
            }
            (b'\\', [escaped, tail @ ..]) => {
                plain.push(*escaped);
                rest = tail;
            }
            _ => plain.push(*byte),
        }
    }
    plain
}
