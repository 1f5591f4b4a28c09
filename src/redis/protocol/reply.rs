//! Replies of Redis.

use diana_policy::key::Seed;
use diana_policy::time::Micros;
use diana_store::replies::Reply;

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
