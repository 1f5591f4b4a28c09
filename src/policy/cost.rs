//! What a request takes.

use super::IdentitySource;

/// Where a request says what it takes. What it takes at most stands in [`Quota::cost`](super::Quota::cost).
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Where it is looked for: a header or metadata.
    pub source: IdentitySource,
    /// Whether metadata holds it as text, and not as a number.
    pub is_text: bool,
    /// Permits where nothing is said, or nothing that is a number; 1 ..= the most that a request takes.
    pub default: u64,
}
