//! What headers can be.

/// Whether `name` can be a header's name (a token of RFC 9110, in any case).
#[must_use]
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Whether `value` can be a header's value that Diana sends.
#[must_use]
pub fn is_value(value: &str) -> bool {
    let is_sound = value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    is_sound && value.trim() == value && (1..=1024).contains(&value.len())
}
