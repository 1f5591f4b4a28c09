//! Values of dynamic metadata, among them claims, as the host serializes them.

/// Returns true if a value is empty: a text without characters, or a list or mapping without items, of which the host only
/// writes the number of items in four bytes.
#[must_use]
pub fn is_empty(value: &[u8]) -> bool {
    matches!(value, [] | [0, 0, 0, 0])
}
