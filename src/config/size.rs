//! Sizes: whole numbers of KiB or MiB.

use super::duration::amount;
use super::node::Node;
use diana_core::tree::Tree;

const UNITS: [(&str, u64); 2] = [("KiB", 1 << 10), ("MiB", 1 << 20)];
const MIN: u64 = 1 << 10;

/// A size in bytes, up to a whole number of MiB.
pub fn read(node: &Node<'_>, most: u64) -> Option<u64> {
    let bytes = match node.tree() {
        Tree::Text(text) => amount(text, &UNITS),
        _ => None,
    };
    let fits = bytes.filter(|bytes| (MIN..=most).contains(bytes));
    if fits.is_none() {
        node.reject(&format!(
            "a size, 1KiB … {}MiB: a whole number of KiB or MiB, such as `64KiB`",
            most >> 20
        ));
    }
    fits
}
