//! Plain scalars in Envoy's own files: the words of YAML 1.1, whole numbers of 32 bits, and texts.

use super::yaml_1_1;
use diana_policy::tree::Tree;

/// The value of a plain scalar that is neither null nor `true` or `false`.
pub fn read(text: String) -> Tree {
    let whole = || whole(&text).map(|whole| Tree::Int(whole.into()));
    yaml_1_1::word(&text).or_else(whole).unwrap_or(Tree::Text(text))
}

/// The whole number that a text denotes in C: decimal, hexadecimal or octal.
fn whole(text: &str) -> Option<i32> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if digits.starts_with('0') => (digits, 8),
        None => (digits, 10),
    };
    let has_sign = digits.starts_with(['+', '-']);
    let value = i64::from_str_radix(digits, radix).ok().filter(|_| !has_sign)?;
    i32::try_from(if negative { -value } else { value }).ok()
}
