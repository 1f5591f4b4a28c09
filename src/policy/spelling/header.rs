//! Header fields: valid names and values, and fields with a single value, several of which a proxy
//! may join into one.

use std::borrow::Cow;

/// The header with a client's credentials.
pub const AUTHORIZATION: &str = "authorization";

/// The prefix of tokens that `jwt_authn` and `api_key_auth` search for.
const BEARER: &[u8] = b"Bearer ";

/// Headers with a single value whose repetitions Envoy joins with a comma, sorted. A test compares
/// them with Envoy.
pub const SINGLE: &[&str] = &[
    "access-control-request-method",
    "access-control-request-private-network",
    "authentication",
    AUTHORIZATION,
    "content-type",
    "grpc-timeout",
    "origin",
    "referer",
    "user-agent",
    "x-client-trace-id",
    "x-envoy-attempt-count",
    "x-envoy-decorator-operation",
    "x-envoy-downstream-service-cluster",
    "x-envoy-downstream-service-node",
    "x-envoy-external-address",
    "x-envoy-is-timeout-retry",
    "x-envoy-original-host",
    "x-envoy-original-path",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-request-id",
];

/// Further headers that Envoy joins. Commas are usual in their values: lists, dates and entity
/// tags. Sorted.
pub const LISTS: &[&str] = &[
    "accept",
    "accept-encoding",
    "access-control-request-headers",
    "cache-control",
    "cdn-loop",
    "content-encoding",
    "expect",
    "grpc-accept-encoding",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "pragma",
    "proxy-status",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
];

/// Returns true if a header with this name, in lower case, has a single value.
#[must_use]
pub fn is_single(name: &str) -> bool {
    SINGLE.binary_search(&name).is_ok()
}

/// Returns true if a header with this name, in lower case, is a list that Envoy joins.
#[must_use]
pub fn is_list(name: &str) -> bool {
    LISTS.binary_search(&name).is_ok()
}

/// Returns true if a value of the header `name` may be several fields that a proxy joined: it has a
/// comma outside comments and quoted strings, the only places for a comma in a single value. Quotes
/// do not protect commas in credentials, nor do unbalanced quotes.
#[must_use]
pub fn is_joined(name: &str, value: &[u8]) -> bool {
    if !value.contains(&b',') || !is_single(name) {
        return false;
    }
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    for &byte in value {
        match byte {
            _ if std::mem::take(&mut is_escaped) => {}
            b'\\' => is_escaped = is_quoted || depth > 0,
            b'"' if depth == 0 => is_quoted = !is_quoted,
            b'(' if !is_quoted => depth += 1,
            b')' if !is_quoted => depth = depth.saturating_sub(1),
            b',' if !is_quoted && depth == 0 => return true,
            _ => {}
        }
    }
    is_quoted || depth > 0 || name == AUTHORIZATION
}

/// One spelling of credentials: the scheme in one case, followed by one space. `jwt_authn` searches
/// a token after the first `Bearer` in the value. `basic_auth` accepts base64 with and without
/// padding.
#[must_use]
pub fn credentials(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b' ') && !value.contains(&b'\t') {
        return Cow::Borrowed(value);
    }
    // Searches by the first byte, since values may be long and hostile.
    let mut starts = value.iter().enumerate().filter(|(_, byte)| **byte == b'B');
    let bearer = starts.find_map(|(at, _)| Some((at, value.get(at..)?.strip_prefix(BEARER)?)));
    if let Some((at, token)) = bearer {
        let plain = token.trim_ascii();
        return match (at, plain.len() == token.len()) {
            (0, true) => Cow::Borrowed(value),
            _ => Cow::Owned([BEARER, plain].concat()),
        };
    }
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some((scheme, rest)) =
        value.iter().position(is_space).and_then(|end| value.split_at_checked(end))
    else {
        return Cow::Borrowed(value);
    };
    if scheme.contains(&b'.') {
        // A JSON web token with a space in it, not a scheme.
        return Cow::Borrowed(value);
    }
    let mut one = scheme.to_ascii_lowercase();
    if let Some(first) = one.first_mut() {
        first.make_ascii_uppercase();
    }
    one.push(b' ');
    let rest = rest.trim_ascii();
    if one == b"Basic " && is_base64(rest) {
        let digits = unpadded(rest);
        one.extend_from_slice(&digits);
        // Padded as encoders do, so that it equals the text of a condition.
        let padding = digits.len().next_multiple_of(4) - digits.len();
        one.resize(one.len() + padding, b'=');
    } else {
        one.extend_from_slice(rest);
    }
    Cow::Owned(one)
}

/// The token after `Bearer`.
#[must_use]
pub fn token(credentials: &[u8]) -> Option<&[u8]> {
    credentials.strip_prefix(BEARER)
}

/// One spelling of a client's key: as credentials, without repeated `Bearer` in any case, and
/// without surrounding spaces and quotes. Of a JSON web token, only the signed part.
#[must_use]
pub fn key(value: &[u8]) -> Cow<'_, [u8]> {
    // Most keys have none of these bytes, and no other spelling.
    let is_special =
        |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\x0c' | b'\r' | b'"' | b'.');
    if !value.iter().any(is_special) {
        return Cow::Borrowed(value);
    }
    // `jwt_authn` reads the token after the first one.
    let first = value.windows(BEARER.len()).position(|at| at == BEARER);
    let behind = first.and_then(|at| value.get(at + BEARER.len()..)).unwrap_or(value);
    if let Some(signed) = signed_part(behind) {
        return Cow::Owned(signed);
    }
    let last = value.windows(BEARER.len()).rposition(|at| at == BEARER);
    let mut key = last.and_then(|at| value.get(at + BEARER.len()..)).unwrap_or(value);
    loop {
        key = key.trim_ascii();
        match key.split_at_checked(BEARER.len()) {
            Some((scheme, rest)) if is_bearer(scheme) => key = rest,
            _ => break,
        }
    }
    let quoted = key.strip_prefix(b"\"").and_then(|key| key.strip_suffix(b"\""));
    credentials(quoted.unwrap_or(key).trim_ascii())
}

/// Returns true if this is the bearer scheme in any case, followed by a space.
fn is_bearer(text: &[u8]) -> bool {
    matches!(text, [scheme @ .., b' ' | b'\t'] if scheme.eq_ignore_ascii_case(b"bearer"))
}

/// Header and payload of the first JSON web token in a value, joined by a dot. Only this part is
/// signed, so only this part has a single spelling. Readers accept any text around a token,
/// repeated dots, and many encodings of a signature.
#[must_use]
pub fn signed_part(value: &[u8]) -> Option<Vec<u8>> {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    // Each byte is read only a few times, since values may be long and hostile.
    let mut rest = value;
    loop {
        let start = rest.windows(3).position(begins_object)?;
        rest = rest.get(start..)?;
        let end = rest.iter().position(|byte| !is_digit(byte))?;
        let (header, behind) = rest.split_at_checked(end)?;
        let dots = behind.iter().take_while(|byte| **byte == b'.').count();
        rest = behind.get(dots.max(1)..)?;
        let end = rest.iter().position(|byte| !is_digit(byte))?;
        let payload = rest.get(..end)?;
        if dots > 0 && begins_object(payload) && rest.get(end) == Some(&b'.') {
            return Some([header, b".", payload].concat());
        }
    }
}

/// Returns true if this is base64 of the beginning of a JSON object: `{` and a quote, a space, a
/// tab or a line end.
fn begins_object(text: &[u8]) -> bool {
    matches!(text, [b'e', b'y', b'I'..=b'L' | b'A', ..] | [b'e', b'w', b'k'..=b'r' | b'0'..=b'3', ..])
}

/// Returns true if the text is base64 of any alphabet, padded or not.
fn is_base64(text: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    let digits = text.iter().take_while(|byte| is_digit(byte)).count();
    digits > 0 && text.iter().skip(digits).all(|&byte| byte == b'=')
}

/// Base64 without padding, with the unused bits of its last character cleared.
fn unpadded(text: &[u8]) -> Cow<'_, [u8]> {
    let end = text.iter().rposition(|&byte| byte != b'=').map_or(0, |last| last + 1);
    let digits = text.get(..end).unwrap_or_default();
    let ignored = match digits.len() % 4 {
        2 => 0b1111,
        3 => 0b11,
        _ => return Cow::Borrowed(digits),
    };
    let Some((&last, rest)) = digits.split_last() else { return Cow::Borrowed(digits) };
    let value = match last {
        b'A'..=b'Z' => last - b'A',
        b'a'..=b'z' => last - b'a' + 26,
        b'0'..=b'9' => last - b'0' + 52,
        _ => 63,
    };
    // The last two digits of each alphabet have bits to clear.
    let plain = match value & !ignored {
        value @ 0..26 => b'A' + value,
        value @ 26..52 => b'a' + value - 26,
        value => b'0' + value - 52,
    };
    if plain == last { Cow::Borrowed(digits) } else { Cow::Owned([rest, &[plain]].concat()) }
}

/// Returns true if `name` is a valid header name (a token of RFC 9110, in any case).
#[must_use]
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Returns true if Diana may send `value` as the value of a header.
#[must_use]
pub fn is_value(value: &str) -> bool {
    let is_sound = value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    is_sound && value.trim() == value && (1..=1024).contains(&value.len())
}
