//! Cookies.

use std::borrow::Cow;

use super::{Pair, may_name, only_component};

/// Whether `name` can be a cookie's name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.bytes().any(|byte| byte <= b' ' || b"=;,\x7f".contains(&byte))
}

/// What may be the values of a cookie in one header. Some upstreams percent-decode names and values.
pub fn pairs<'a>(header: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = Pair<'a>> {
    header.split(|&byte| byte == b';').filter_map(move |pair| {
        let equals = pair.iter().position(|&byte| byte == b'=')?;
        let (key, value) = pair.split_at_checked(equals)?;
        // Some readers take off no other spaces than this one.
        let key = key.strip_prefix(b" ").unwrap_or(key);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        may_name(key.trim_ascii(), name).then(|| Pair {
            value,
            is_plain: key == name,
            is_encoded: only_component(key).is_some_and(|key| key == name),
        })
    })
}

/// What a cookie's value may be taken for: quotes around it are no part of it. Where they hold escapes,
/// or do not end, upstreams differ, so it is two values.
pub fn unquoted(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let inner = value.strip_prefix(b"\"");
    let whole = inner.and_then(|inner| inner.strip_suffix(b"\""));
    let unclear = inner.filter(|inner| whole.is_none() || inner.contains(&b'\\'));
    std::iter::once(whole.unwrap_or(value)).chain(unclear)
}

/// All that a cookie's value may be taken for before it is decoded: with its quotes, without them, and with what
/// is escaped between them written out.
pub fn readings(value: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let inner = value.strip_prefix(b"\"");
    let inner = inner.map(|inner| inner.strip_suffix(b"\"").unwrap_or(inner));
    let escaped = inner.filter(|inner| inner.contains(&b'\\')).map(unescaped);
    let unquoted = unquoted(value).filter(move |reading| reading.len() < value.len());
    let as_written = std::iter::once(value).chain(unquoted).map(Cow::Borrowed);
    as_written.chain(escaped.map(Cow::Owned))
}

/// What stands between quotes with a byte for each `\` and three octal digits, and for each `\` the byte behind it.
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
