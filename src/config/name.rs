//! What a name may be.

/// Longest name.
pub const LONGEST: usize = 64;

/// For messages.
pub const ALLOWED: &str = "1 … 64 of the characters a-z, 0-9, `_` and `-`";

/// Whether `name` is one.
pub fn is_name(name: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(plain)
}
