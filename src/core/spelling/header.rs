//! Header fields with a single value. A proxy may join several of them into one.

use std::borrow::Cow;

/// The header with a client's credentials.
pub const AUTHORIZATION: &str = "authorization";

/// Headers with a single value, of which Envoy joins repeated fields with a comma, sorted. A test compares them with
/// what Envoy does.
pub const SINGLE: &[&str] = &[
    "access-control-request-method",
    "access-control-request-private-network",
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

/// Returns true if a header with this name, in lower case, has a single value.
#[must_use]
pub fn is_single(name: &str) -> bool {
    SINGLE.binary_search(&name).is_ok()
}

/// Returns true if a value of the header `name` may be several fields that a proxy joined: it has a comma outside
/// comments and quoted strings, the only places where a single value has one. Quotes protect no comma in credentials, and none
/// that do not end.
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

/// Credentials in one spelling: the scheme without regard to case and one space behind it. `jwt_authn` finds a token
/// behind the first `Bearer` in the value and skips what cannot begin one, so that is no part of them either.
#[must_use]
pub fn credentials(value: &[u8]) -> Cow<'_, [u8]> {
    const BEARER: &[u8] = b"Bearer ";
    if !value.contains(&b' ') && !value.contains(&b'\t') {
        return Cow::Borrowed(value);
    }
    // By its first byte, since values may be long and hostile.
    let mut starts = value.iter().enumerate().filter(|(_, byte)| **byte == b'B');
    let bearer = starts.find_map(|(at, _)| Some((at, value.get(at..)?.strip_prefix(BEARER)?)));
    if let Some((at, token)) = bearer {
        let begins = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let start = token.iter().position(begins).unwrap_or(token.len());
        return if (at, start) == (0, 0) {
            Cow::Borrowed(value)
        } else {
            Cow::Owned([BEARER, token.get(start..).unwrap_or_default()].concat())
        };
    }
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some((scheme, rest)) =
        value.iter().position(is_space).and_then(|end| value.split_at_checked(end))
    else {
        return Cow::Borrowed(value);
    };
    let mut one = scheme.to_ascii_lowercase();
    if let Some(first) = one.first_mut() {
        first.make_ascii_uppercase();
    }
    one.push(b' ');
    one.extend_from_slice(rest.trim_ascii());
    Cow::Owned(one)
}

/// The token of a client that presents one as `Bearer`.
#[must_use]
pub fn token(credentials: &[u8]) -> Option<&[u8]> {
    credentials.strip_prefix(b"Bearer ")
}
