//! The limiter's identifier of a question.

/// The receiver of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The rule with this number, for one of its callers.
    Rule(usize),
    /// The bans of the rule with this number, for one of its callers.
    Ban(usize),
}
