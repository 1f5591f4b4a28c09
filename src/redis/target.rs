//! What a question is about, as the limiter knows it.

/// Who is to take a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The rule with this number, about one of its callers.
    Rule(usize),
    /// The bans of the rule with this number, about one of its callers.
    Ban(usize),
}
