//! Replies of an authority outside of the gateway to questions.

use super::lease::Block;
use super::question::{Charge, Question};
use super::refusal::{Reason, Refused};
use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};

/// The questions about one request, order or operation, with their results.
#[derive(Debug, Clone, Default)]
pub struct Replies(Vec<(Question, QuestionResult)>);

/// The result of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionResult {
    /// The authority decided.
    Decided {
        /// The reply.
        reply: Reply,
        /// Ticks until the request may proceed by all questions of this ask; `None` if it was
        /// refused, without a charge.
        wait: Option<Micros>,
        /// When it was asked.
        sent: Now,
        /// When it decided, on this gateway's monotonic clock.
        at: Micros,
        /// The same on the authority's clock, which orders decisions exactly.
        there: Micros,
    },
    /// The authority is unavailable, so that the gateway decides.
    Degraded,
    /// The question was lost: callers are hashed with another secret from now on, or the root of
    /// the call has ended. The request must be decided again.
    Repeat,
}

impl Replies {
    /// No replies.
    #[must_use]
    #[inline]
    pub fn none() -> &'static Replies {
        static NONE: Replies = Replies(Vec::new());
        &NONE
    }

    /// Adds the results of questions.
    pub fn add(&mut self, answered: impl IntoIterator<Item = (Question, QuestionResult)>) {
        self.0.extend(answered);
    }

    /// The questions with their results.
    pub fn iter(&self) -> impl Iterator<Item = &(Question, QuestionResult)> {
        self.0.iter()
    }

    /// The question about a caller of the rule with this fingerprint, and its result.
    #[must_use]
    pub fn of_rule(&self, rule: u64, caller: Key) -> Option<(&Charge, QuestionResult)> {
        self.0.iter().find_map(|(question, result)| match question {
            Question::Rule(it) if it.fingerprint == rule && it.caller == caller => {
                Some((it, *result))
            }
            _ => None,
        })
    }

    /// The reply about a caller of the bans with this fingerprint. `None` without a decision.
    #[must_use]
    pub fn of_ban(&self, bans: u64, caller: Key) -> Option<BanReply> {
        self.0.iter().find_map(|(question, result)| match (question, result) {
            (Question::Ban(it), QuestionResult::Decided { reply: Reply::Ban(reply), .. }) => {
                (it.fingerprint == bans && it.caller == caller).then_some(*reply)
            }
            _ => None,
        })
    }
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
    /// ([`Effect::ReadUsage`](super::question::Effect::ReadUsage)).
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

impl RuleReply {
    /// The block that it leases.
    #[must_use]
    pub fn leased(&self) -> Block {
        Block { permits: self.block, term: self.term, receipt: self.lease }
    }

    /// Its refusal, with this number of remaining permits.
    #[must_use]
    pub fn refused(&self, retry: Retry, left: u64) -> Refused {
        let reason = if self.is_outstanding { Reason::Outstanding } else { Reason::Used };
        Refused { reason, retry, remaining: Some(left) }
    }
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
