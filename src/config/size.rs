//! Sizes: whole numbers of KiB or MiB.

use super::duration::amount;
use super::node::Node;
use crate::tree::Tree;

const UNITS: [(&str, u64); 2] = [("KiB", 1 << 10), ("MiB", 1 << 20)];
const MIN: usize = 1 << 10;
const MAX: usize = 16 << 20;
const ALLOWED: &str = "a size, 1KiB … 16MiB: a whole number of KiB or MiB, such as `64KiB`";

/// A size in bytes.
pub fn read(node: &Node<'_>) -> Option<usize> {
    let bytes = match node.tree() {
        Tree::Text(text) => amount(text, &UNITS).and_then(|bytes| usize::try_from(bytes).ok()),
        _ => None,
    };
    let fits = bytes.filter(|bytes| (MIN..=MAX).contains(bytes));
    if fits.is_none() {
        node.reject(ALLOWED);
    }
    fits
}
