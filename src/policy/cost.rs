//! The cost of a request.

use super::IdentitySource;

/// The source of a request's cost. The maximum is in [`Quota::cost`](super::Quota::cost).
#[derive(Debug, Clone, PartialEq)]
pub struct NumberSource {
    /// A header or metadata.
    pub source: IdentitySource,
    /// Whether the metadata is text instead of a number.
    pub is_text: bool,
    /// The cost if the value is missing or not a number, 1 ..= the maximum.
    pub default: u64,
}
