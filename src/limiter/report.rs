//! Decisions as data, from which headers, the filter state, log lines and metrics are made.

pub mod body;
pub mod explanation;
pub mod headers;
pub mod hot;
pub mod jitter;
pub mod metrics;
pub mod protocol;
pub mod state;

use std::rc::Rc;
use std::sync::Arc;

use diana_policy::decision::Retry;
use diana_policy::headers::Headers;
use diana_policy::key::LoggedKey;
use diana_policy::time::Micros;
use diana_policy::{LimitFields, Response, Scope};
use diana_store::refusal::{Reason, Refused};
use explanation::Explained;
use jitter::Jitter;

/// The decision of one rule about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The rule's name.
    pub rule: Rc<str>,
    /// The scope in which usage was counted; narrower than the configured one without Redis.
    pub scope: Scope,
    /// Whether the rule is only reported.
    pub shadow: bool,
    /// Whether the rule marks a request that exceeds its limit, instead of refusing it.
    pub marks: bool,
    /// Whether the rule shows in headers.
    pub shown: bool,
    /// The name of the caller's plan, if the configuration lists it; `own` for a plan of a single
    /// caller.
    pub plan: Option<Rc<str>>,
    /// The decision.
    pub outcome: Outcome,
    /// Quota in permits and window in ticks.
    pub policy: (u64, Micros),
    /// The caller.
    pub caller: LoggedKey,
}

/// The decision of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The request may proceed.
    Admitted {
        /// Ticks until its turn; zero is at once.
        wait: Micros,
        /// Permits left, if that is known.
        remaining: Option<u64>,
        /// Ticks until more permits remain; `None` is never.
        renewal: Option<Micros>,
    },
    /// The request is refused.
    Refused(Refused),
}

impl Outcome {
    /// The refusal, if the request is refused.
    #[must_use]
    pub fn refused(self) -> Option<Refused> {
        if let Outcome::Refused(refused) = self { Some(refused) } else { None }
    }

    /// Permits left, if that is known.
    #[must_use]
    pub fn remaining(self) -> Option<u64> {
        match self {
            Outcome::Admitted { remaining, .. } => remaining,
            Outcome::Refused(refused) => refused.remaining,
        }
    }

    /// Ticks until such a request may proceed, if it is refused, or until more permits remain;
    /// `None` is never.
    #[must_use]
    pub fn reset(self) -> Option<Micros> {
        match self {
            Outcome::Admitted { renewal, .. } => renewal,
            Outcome::Refused(refused) => refused.retry.ticks(),
        }
    }
}

/// The report of an admitted request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// All rules that applied, if headers are configured.
    pub records: Vec<Record>,
    /// The fields of their headers.
    pub fields: LimitFields,
    /// When the request was checked, on the wall clock.
    pub wall: Micros,
    /// The rule for the access log. Present if the configuration logs accepted requests, if a rule
    /// holds the request, or if a rule in shadow would have refused or held it.
    pub by: Option<Record>,
    /// Headers of the request. Each names a rule with a hot caller, or the rules in shadow that
    /// would have refused it.
    pub marks: Vec<(Rc<str>, String)>,
    /// All rules, if an operator asks for an explanation; otherwise none.
    pub explained: Vec<Explained>,
}

/// A response of this filter to a request, which Envoy calls a local reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalReply {
    /// The HTTP status.
    pub status: u16,
    /// Its headers. Envoy adds those for the status and the length, and `text/plain` to a body without a type.
    pub headers: Headers,
    /// Its body. Most refusals share one.
    pub body: Arc<[u8]>,
    /// The reason that Envoy's access log names.
    pub details: &'static str,
    /// The entry for the access log. Empty if it has none.
    pub log: String,
    /// The gRPC status, if Envoy takes the request for gRPC.
    pub grpc_status: u8,
    /// Whether Envoy may take the request for gRPC. False only if that is known.
    pub may_be_grpc: bool,
}

/// The answer to a refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Status, body and headers as configured.
    pub response: Rc<Response>,
    /// All rules that were evaluated, if there are several.
    pub several: Vec<Record>,
    /// The first rule that refuses.
    pub by: Record,
    /// The longest retry delay.
    pub retry: Retry,
    /// The time to add to it in the reply.
    pub jitter: Jitter,
    /// When the request was checked, on the wall clock.
    pub wall: Micros,
    /// Whether it is logged.
    pub is_logged: bool,
    /// As [`Report::explained`].
    pub explained: Vec<Explained>,
}

impl Refusal {
    /// Returns true if the store of the rule is unavailable, and no limit is exceeded.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.reason() == Some(Reason::Unavailable)
    }

    /// Why the first rule refuses it.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        self.by.outcome.refused().map(|refused| refused.reason)
    }

    /// The HTTP status of the answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        if self.is_unavailable() { 503 } else { self.response.status }
    }

    /// All rules that were evaluated.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        if self.several.is_empty() { std::slice::from_ref(&self.by) } else { &self.several }
    }
}
