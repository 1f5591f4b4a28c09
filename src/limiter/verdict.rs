//! The decision about a request.

use crate::report::{Refusal, Report};
use diana_policy::key::Key;
use diana_policy::time::Micros;
use diana_store::permit::Permit;

/// The decision of all rules about one request.
#[derive(Debug)]
pub enum Verdict {
    /// The request proceeds. With a report, if there are records, marks or an explanation.
    Admit(Permit, Option<Box<Report>>),
    /// The request proceeds later.
    Hold(Box<Held>),
    /// The request is refused.
    Refuse(Box<Refusal>),
    /// The request waits for replies of Redis.
    Pending {
        /// Its number in the limiter.
        id: u64,
    },
}

impl Verdict {
    /// The request proceeds without open charges and without a report.
    // A constant would be copied whole, with its padding, for every request.
    #[must_use]
    #[inline]
    pub fn pass() -> Verdict {
        Verdict::Admit(Permit::NONE, None)
    }

    /// Returns true if it is [`Verdict::pass`].
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
    /// Its queue positions, which are returned if the client leaves before its turn.
    pub position: Permit,
    /// Its charges that are settled when its stream ends.
    pub permit: Permit,
    /// Its report.
    pub report: Report,
}

/// A line of requests of one caller under one rule of a limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLine {
    /// The rule's number in its limiter.
    pub rule: usize,
    /// The caller.
    pub key: Key,
    /// The plan of the request. Positions have the same length only under the same plan.
    pub plan: u32,
}
