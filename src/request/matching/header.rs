//! Valid names and values of headers.

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
