//! What single values may be: names, durations, sizes.

use super::node::Node;
use diana_core::time::{DURATIONS, Micros, amount, spell};
use diana_core::tree::Tree;

/// Longest name.
pub const LONGEST: usize = 64;

/// For messages.
pub const NAME: &str = "1 … 64 of the characters a-z, 0-9, `_` and `-`";

/// Whether `name` is one.
pub fn is_name(name: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(plain)
}

/// What the name of a cluster may be.
pub const CLUSTER: &str = "the name of a cluster in Envoy, up to 255 visible ASCII characters";
/// What the name of a variable may be.
pub const VARIABLE: &str = "the name of a variable: A-Z, a-z, 0-9 and `_`";

/// The name of a cluster.
pub fn cluster(node: &Node<'_>) -> Option<String> {
    visible(node, CLUSTER, 255)
}

/// The name of a variable.
pub fn variable(node: &Node<'_>) -> Option<String> {
    let text = visible(node, VARIABLE, 255)?;
    if text.bytes().any(|byte| !byte.is_ascii_alphanumeric() && byte != b'_') {
        node.reject(VARIABLE);
    }
    Some(text)
}

/// Text without spaces, up to `most` bytes of it.
pub fn visible(node: &Node<'_>, allowed: &str, most: usize) -> Option<String> {
    let text = node.free_text(allowed)?;
    if (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(text.into());
    }
    node.reject(allowed);
    None
}

/// A duration in ticks, in a range. Nothing at all is `0` in any unit.
pub fn duration(node: &Node<'_>, min: Micros, max: Micros) -> Option<Micros> {
    let fits = ticks(node.tree()).filter(|ticks| (min..=max).contains(ticks));
    if fits.is_none() {
        let (min, max) = (spell(min), spell(max));
        node.reject(&format!(
            "a duration, {min} … {max}: a whole number of ms, s, m, h or d, such as `1500ms`"
        ));
    }
    fits
}

/// What is a duration, in ticks; nothing if it is none, or too long for a number.
pub fn ticks(tree: &Tree) -> Option<Micros> {
    match tree {
        Tree::Int(0) => Some(0),
        Tree::Text(text) if text == "0" => Some(0),
        Tree::Text(text) => amount(text, &DURATIONS),
        _ => None,
    }
}

const SIZES: [(&str, u64); 2] = [("KiB", 1 << 10), ("MiB", 1 << 20)];
const LEAST: u64 = 1 << 10;

/// A size in bytes, up to a whole number of MiB.
pub fn size(node: &Node<'_>, most: u64) -> Option<u64> {
    let bytes = match node.tree() {
        Tree::Text(text) => amount(text, &SIZES),
        _ => None,
    };
    let fits = bytes.filter(|bytes| (LEAST..=most).contains(bytes));
    if fits.is_none() {
        node.reject(&format!(
            "a size, 1KiB … {}MiB: a whole number of KiB or MiB, such as `64KiB`",
            most >> 20
        ));
    }
    fits
}
