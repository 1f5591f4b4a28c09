//! The receiver of a reply that no request waits for.

/// The receiver of a reply to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The rule with this number, for one of its callers.
    Rule(usize),
    /// The bans of the rule with this number, for one of its callers.
    Ban(usize),
}
