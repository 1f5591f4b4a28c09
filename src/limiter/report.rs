//! What was decided about a request, as data. Whatever is told of it is made from that, each in its own
//! place: headers, the filter state, which is also the line in the log, and metrics.

pub mod answer;
pub mod explained;
pub mod headers;
pub mod hot;
pub mod metrics;
pub mod protocol;
pub mod state;

use std::rc::Rc;

use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::time::Micros;
use diana_policy::{LimitFields, Response, Scope};
use explained::Explained;

/// What one rule decided about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The rule's name.
    pub rule: Rc<str>,
    /// How widely usage was counted, which may be less than what was configured.
    pub scope: Scope,
    /// Whether the rule is only reported.
    pub shadow: bool,
    /// Whether the rule shows in headers.
    pub shown: bool,
    /// The plan by which it judged, if it is one that somebody has listed; `own` where that is the caller's.
    pub plan: Option<Rc<str>>,
    /// What it decided.
    pub outcome: Outcome,
    /// Quota in permits and window in ticks.
    pub policy: (u64, Micros),
    /// Permits left, if that is known.
    pub remaining: Option<u64>,
    /// Ticks until such a request may go on, if it is refused, or until more permits are left, if that ever is.
    pub reset: Option<Micros>,
    /// The caller's key.
    pub caller: Key,
}

/// What a rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The request may go on.
    Admitted {
        /// Ticks until its turn; zero is at once.
        wait: Micros,
    },
    /// The request is refused, until then.
    Refused(Retry),
    /// The caller is banned for so many ticks more.
    Banned(Micros),
    /// Redis is unavailable, so that no limit was checked, and the rule refuses all requests for this many ticks.
    Unavailable(Micros),
}

impl Outcome {
    /// When to come back, if the request is refused.
    #[must_use]
    pub fn retry(self) -> Option<Retry> {
        match self {
            Outcome::Admitted { .. } => None,
            Outcome::Refused(retry) => Some(retry),
            Outcome::Banned(ticks) | Outcome::Unavailable(ticks) => Some(Retry::After(ticks)),
        }
    }
}

/// What is told of a request that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// All rules that applied, where headers were asked for.
    pub records: Vec<Record>,
    /// In which fields they are told.
    pub fields: LimitFields,
    /// The rule that the access log names, where it was asked for, a rule holds the request, or one in
    /// shadow refused it or would have held it.
    pub by: Option<Record>,
    /// A header of the request, and the rules in shadow that refused it.
    pub mark: Option<(Rc<str>, String)>,
    /// All rules that were consulted, for an operator who asks; otherwise none.
    pub explained: Vec<Explained>,
}

/// The answer to a refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Status, body and headers as configured.
    pub response: Rc<Response>,
    /// All rules that had a say, if there are several.
    pub several: Vec<Record>,
    /// The first rule that refuses.
    pub by: Record,
    /// When all rules that refuse would admit such a request.
    pub retry: Retry,
    /// Ticks that clients are told to wait beyond that.
    pub jitter: Micros,
    /// Whether the log is to have a line about it.
    pub is_logged: bool,
    /// As [`Report::explained`].
    pub explained: Vec<Explained>,
}

impl Refusal {
    /// Returns true if the store of the rule is unavailable, and no limit is exceeded.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(self.by.outcome, Outcome::Unavailable(_))
    }

    /// The HTTP status of the answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        if self.is_unavailable() { 503 } else { self.response.status }
    }

    /// All rules that had a say.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        if self.several.is_empty() { std::slice::from_ref(&self.by) } else { &self.several }
    }
}
