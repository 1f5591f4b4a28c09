//! The decision about a replayed request.

use std::rc::Rc;

use diana_limiter::{Reason, Refusal, Verdict};
use diana_policy::time::Micros;

/// The decision about one request.
#[derive(Debug)]
pub enum ReplayDecision {
    /// The request is admitted at once.
    Admitted,
    /// The request is admitted after a wait.
    Held {
        /// The rule with the longest wait.
        rule: Option<Rc<str>>,
        /// Microseconds from the arrival of the request to its turn.
        wait: Micros,
    },
    /// The request is refused.
    Refused(Box<Refusal>),
}

impl ReplayDecision {
    /// The decision that a verdict of the limiter stands for at `now`.
    pub(crate) fn new(verdict: &Verdict, now: Micros) -> ReplayDecision {
        match verdict {
            // No request is pending: there is no Redis to wait for.
            Verdict::Admit(..) | Verdict::Pending { .. } => ReplayDecision::Admitted,
            Verdict::Hold(held) => ReplayDecision::Held {
                rule: held.report.by.as_ref().map(|by| by.rule.clone()),
                wait: held.until.saturating_sub(now),
            },
            Verdict::Refuse(refusal) => ReplayDecision::Refused(refusal.clone()),
        }
    }

    /// Returns true if the request is refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, ReplayDecision::Refused(_))
    }

    /// Returns true if the request is refused because its caller is banned.
    #[must_use]
    pub fn is_ban(&self) -> bool {
        matches!(self, ReplayDecision::Refused(refusal) if refusal.reason() == Some(Reason::Banned))
    }

    /// The rule that holds or refuses the request.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        match self {
            ReplayDecision::Admitted => None,
            ReplayDecision::Held { rule, .. } => rule.as_deref(),
            ReplayDecision::Refused(refusal) => Some(&refusal.by.rule),
        }
    }
}
