//! What Redis replies.

use diana_policy::decision::Retry;
use diana_policy::key::Seed;
use diana_policy::time::Micros;

/// What one call of the script answers.
#[derive(Clone)]
pub enum ScriptAnswer {
    /// The namespace's seed is another, and nothing was decided.
    Seed(Seed),
    /// What was decided.
    Decided(Decided),
}

/// See [`ScriptAnswer::Decided`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// Gateways that have called within the last four or five seconds, this one included.
    pub gateways: u64,
    /// Whether the keys fall into another number of parts for some of these.
    pub is_apart: bool,
    /// What Redis's clock shows that never goes back.
    pub now: Micros,
    /// Values that were not what the script had written, and counted as empty.
    pub corrupt: u64,
    /// One for each ask.
    pub asks: Vec<AskReply>,
}

/// What became of an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskReply {
    /// Ticks until the request may leave; nothing if it was refused and nothing was charged.
    pub wait: Option<Micros>,
    /// One for each question.
    pub replies: Vec<Reply>,
}

/// What is replied to one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// About a caller of a rule.
    Rule(RuleReply),
    /// About its ban.
    Ban(BanReply),
}

/// What one rule says. Of a rule that was not charged only the first three mean something, and
/// [`RuleReply::overflow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleReply {
    /// When to come back, if it refuses. What lies more than 2⁵³ ticks ahead is said to be that far.
    pub retry: Option<Retry>,
    /// Whether leases of the caller were outstanding when it refused.
    pub is_outstanding: bool,
    /// Permits left, those of the lease not counted.
    pub remaining: u64,
    /// Under which the cost can be given back.
    pub receipt: u64,
    /// The term in which both count as out.
    pub term: u64,
    /// Permits leased beyond the cost.
    pub block: u64,
    /// Under which the block can be given back.
    pub lease: u64,
    /// Permits that are charged, if it was only asked about usage ([`Back::Looks`](super::Back::Looks)).
    pub charged: u64,
    /// Ticks in which the block has to be spent, counted from before the call.
    pub spend: Micros,
    /// Whether the caller shares a value with others, since the rule has as many as it may.
    pub overflow: bool,
}

/// What is known of a ban.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BanReply {
    /// When to come back, if a request is refused for it.
    pub retry: Option<Retry>,
    /// Ticks for which the caller is still banned; zero if it is not.
    pub left: Micros,
    /// Whether the ban begins with the refusals that were counted.
    pub begins: bool,
    /// Whether too many have a value of their own, so that nothing was counted.
    pub overflow: bool,
}

impl Reply {
    /// What a rule says, if it is that.
    #[must_use]
    pub fn rule(&self) -> Option<&RuleReply> {
        match self {
            Reply::Rule(reply) => Some(reply),
            Reply::Ban(_) => None,
        }
    }
}
