//! Why a request is refused, and until when: one type from the check to the headers.

use diana_policy::decision::Retry;
use diana_policy::time::{Micros, SECOND};

/// A refusal by one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub reason: Reason,
    /// When such a request may fit.
    pub retry: Retry,
    /// The caller's remaining permits, too few for the request, if that is known.
    pub remaining: Option<u64>,
}

/// Why a rule refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reason {
    /// The caller has used up its limit, or the limit never allows such a request.
    #[default]
    Used,
    /// Other workers hold leases of the caller, so that the request may fit soon.
    Outstanding,
    /// Other workers won every race, or too many charges are open.
    Busy,
    /// The caller is banned; the request was not checked.
    Banned,
    /// The authority is unavailable, and the rule refuses all requests without a check.
    Unavailable,
}

impl Refused {
    /// The refusal of a caller that has used up its limit.
    #[must_use]
    pub const fn used(retry: Retry) -> Refused {
        Refused { reason: Reason::Used, retry, remaining: None }
    }

    /// The refusal of a caller that is banned for `left` ticks.
    #[must_use]
    pub fn banned(left: Micros) -> Refused {
        Refused { reason: Reason::Banned, retry: Retry::After(left), remaining: Some(0) }
    }

    /// The retry delay to report. While leases are outstanding it is unknown when the request
    /// fits.
    #[must_use]
    pub fn reported(self) -> Refused {
        match self.reason {
            Reason::Outstanding => Refused { retry: Retry::After(SECOND), ..self },
            _ => self,
        }
    }

    /// Returns true if the caller has used up its limit, so that the refusal counts towards a ban.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.reason == Reason::Used && self.retry != Retry::Soon
    }
}

impl Reason {
    /// Its name in the filter state and in explanations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Reason::Used | Reason::Outstanding | Reason::Busy => "refused",
            Reason::Banned => "banned",
            Reason::Unavailable => "unavailable",
        }
    }
}
