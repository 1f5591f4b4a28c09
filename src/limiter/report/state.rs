//! Filter state `wasm.diana` for the access log, also used as the log line: the decision on a
//! request and the rule that made it.

use super::{Outcome, Record};
use diana_policy::number::{push_decimal, push_seconds};
use diana_store::refusal::{Reason, Refused};

/// Bytes of most states.
const LENGTH: usize = 192;

impl Record {
    /// The decision on a request that is reported under this rule.
    #[must_use]
    pub fn state(&self) -> String {
        let outcome = match self.outcome {
            Outcome::Admitted { wait: 0, .. } => "admitted",
            Outcome::Admitted { .. } if self.shadow => "shadow-held",
            Outcome::Admitted { .. } => "held",
            Outcome::Refused(Refused { reason: Reason::Banned, .. }) if self.shadow => {
                "shadow-banned"
            }
            Outcome::Refused(_) if self.shadow => "shadow",
            Outcome::Refused(_) if self.marks => "over",
            Outcome::Refused(refused) => refused.reason.name(),
        };
        let mut state = String::with_capacity(LENGTH);
        state.push_str(outcome);
        state.push_str(" rule=");
        state.push_str(&self.rule);
        state.push_str(" scope=");
        state.push_str(self.scope.name());
        state.push_str(if self.shadow { " mode=shadow" } else { " mode=enforced" });
        if let Some(plan) = &self.plan {
            state.push_str(" plan=");
            state.push_str(plan);
        }
        let wait = match self.outcome {
            Outcome::Admitted { wait: 0, .. } => None,
            Outcome::Admitted { wait, .. } => Some(Some(wait)),
            Outcome::Refused(refused) => Some(refused.retry.ticks()),
        };
        match wait {
            None => {}
            Some(None) => state.push_str(" wait=never"),
            Some(Some(wait)) => {
                state.push_str(" wait=");
                push_seconds(&mut state, wait);
            }
        }
        state.push_str(" limit=");
        push_decimal(&mut state, self.policy.0);
        if let Some(left) = self.outcome.remaining() {
            state.push_str(" remaining=");
            push_decimal(&mut state, left);
        }
        if let Some(ticks) = self.outcome.reset() {
            state.push_str(" reset=");
            push_seconds(&mut state, ticks);
        }
        state.push_str(" key=");
        self.caller.push_to(&mut state);
        state
    }
}
