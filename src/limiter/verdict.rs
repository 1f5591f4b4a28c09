//! What becomes of a request.

use crate::report::{Refusal, Report};
use diana_policy::key::Key;
use diana_policy::time::Micros;
use diana_store::permit::Permit;

/// The decision of all rules about one request.
#[derive(Debug)]
pub enum Verdict {
    /// The request goes on. What is told of it, if anybody wants to know.
    Admit(Permit, Option<Box<Report>>),
    /// The request goes on later.
    Hold(Held),
    /// The request is answered with a refusal.
    Refuse(Refusal),
    /// The request waits until the fleet's store has answered, or for permits that others hold.
    Ask {
        /// Under which the answer comes.
        ticket: u64,
    },
}

impl Verdict {
    /// The request goes on, nothing is reserved for it and nothing is told.
    // A constant would be copied whole, with its padding, for every request.
    #[must_use]
    #[inline]
    pub fn pass() -> Verdict {
        Verdict::Admit(Permit::NONE, None)
    }

    /// Whether it is [`Verdict::pass`].
    #[must_use]
    #[inline]
    pub fn is_pass(&self) -> bool {
        matches!(self, Verdict::Admit(permit, None) if permit.is_none())
    }
}

/// A request that waits for its turn.
#[derive(Debug)]
pub struct Held {
    /// The monotonic instant at which it may leave, and not earlier.
    pub until: Micros,
    /// The line in which it moves up.
    pub line: Option<QueueLine>,
    /// Its places in lines, which come back if the client leaves before its turn.
    pub place: Permit,
    /// Its charges that are settled when its stream ends.
    pub permit: Permit,
    /// What is told of it.
    pub report: Report,
}

/// A line of requests of one caller under one rule of a limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLine {
    /// The rule's number in its limiter.
    pub rule: usize,
    /// The caller.
    pub key: Key,
    /// The plan of the rule by which it is judged: places are of one length only under the same.
    pub plan: u32,
}
