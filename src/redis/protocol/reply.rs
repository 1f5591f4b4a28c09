//! Replies of Redis.

use diana_policy::decision::Retry;
use diana_policy::key::Seed;
use diana_policy::time::Micros;

/// The reply to one call of the script.
#[derive(Clone)]
pub enum ScriptAnswer {
    /// The namespace has another seed, and no ask was decided.
    Seed(Seed),
    /// The decisions.
    Decided(Decided),
}

/// See [`ScriptAnswer::Decided`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// Gateways with a heartbeat in the last four to five seconds, including this one.
    pub gateways: u64,
    /// Whether some of them have another number of shards.
    pub is_apart: bool,
    /// Whether other rules are in use in this namespace, if the call reported those of its gateway.
    pub is_mixed: Option<bool>,
    /// The highest ordinal that this Redis has had of the gateway before, or zero, if the call had
    /// one.
    pub latest_ordinal: Option<u64>,
    /// Redis's monotonic clock.
    pub now: Micros,
    /// Corrupt values, which counted as empty.
    pub corrupt: u64,
    /// One for each ask.
    pub asks: Vec<AskReply>,
}

/// The decision on an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskReply {
    /// Ticks until the request may leave. `None` if it was refused and no rule was charged.
    pub wait: Option<Micros>,
    /// One for each question.
    pub replies: Vec<Reply>,
}

/// The reply to one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// About a caller of a rule.
    Rule(RuleReply),
    /// About a caller's ban.
    Ban(BanReply),
}

/// The result of one rule. If the rule was not charged, only the first three fields and
/// [`RuleReply::overflow`] are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleReply {
    /// The retry delay, if the rule refuses, capped at 2⁵³ ticks.
    pub retry: Option<Retry>,
    /// Whether leases of the caller were outstanding when it refused.
    pub is_outstanding: bool,
    /// Remaining permits, without those of the lease.
    pub remaining: u64,
    /// Identifies the charge, for a return of the cost.
    pub receipt: u64,
    /// The term in which the cost and the block count as outstanding.
    pub term: u64,
    /// Permits leased in addition to the cost.
    pub block: u64,
    /// Identifies the block, for its return.
    pub lease: u64,
    /// Charged permits, for a request of usage only
    /// ([`Effect::ReadUsage`](super::Effect::ReadUsage)).
    pub charged: u64,
    /// Ticks in which the block must be spent, counted from before the call.
    pub spend: Micros,
    /// Whether the caller shares a value with others, since the rule has the maximum number of
    /// values.
    pub overflow: bool,
}

/// The state of a ban.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BanReply {
    /// The retry delay, if the ban refuses the request.
    pub retry: Option<Retry>,
    /// Remaining ticks of the ban; zero if the caller is not banned.
    pub left: Micros,
    /// Whether the counted refusals started the ban.
    pub begins: bool,
    /// Whether the refusals were not counted, since the maximum number of values exists.
    pub overflow: bool,
}

impl Reply {
    /// The result of a rule, or `None` for a ban.
    #[must_use]
    pub fn rule(&self) -> Option<&RuleReply> {
        match self {
            Reply::Rule(reply) => Some(reply),
            Reply::Ban(_) => None,
        }
    }
}
