//! Filter state `wasm.diana` for the access log, which is also the line in the log: what happened to the
//! request, and by which rule.

use super::{Outcome, Record};
use crate::text::{decimal, hexadecimal, millionths};
use crate::time::{Micros, SECOND};

impl Record {
    /// What happened to a request that is reported under this rule.
    #[must_use]
    pub fn state(&self) -> String {
        let mut state = String::with_capacity(self.rule.len() + 192);
        self.add_state(&mut state);
        state
    }

    /// The same, added to a text.
    pub fn add_state(&self, state: &mut String) {
        let outcome = match self.outcome {
            Outcome::Admitted { wait: 0 } => "admitted",
            Outcome::Admitted { .. } if self.shadow => "shadow-held",
            Outcome::Admitted { .. } => "held",
            Outcome::Refused(_) | Outcome::Banned(_) if self.shadow => "shadow",
            Outcome::Refused(_) => "refused",
            Outcome::Banned(_) => "banned",
        };
        let mode = if self.shadow { "shadow" } else { "enforced" };
        let parts = [outcome, " rule=", &self.rule, " scope=", self.scope.name(), " mode=", mode];
        parts.iter().for_each(|part| state.push_str(part));
        if let Some(plan) = &self.plan {
            [" plan=", plan].iter().for_each(|part| state.push_str(part));
        }
        match self.outcome {
            Outcome::Admitted { wait: 0 } => {}
            Outcome::Admitted { wait } | Outcome::Banned(wait) => {
                add_time(state, " wait=", wait);
            }
            Outcome::Refused(retry) => match retry.ticks() {
                Some(wait) => add_time(state, " wait=", wait),
                None => state.push_str(" wait=never"),
            },
        }
        for (what, number) in [(" limit=", self.policy.0), (" remaining=", self.remaining)] {
            state.push_str(what);
            decimal(state, number);
        }
        if let Some(ticks) = self.reset {
            add_time(state, " reset=", ticks);
        }
        state.push_str(" key=");
        hexadecimal(state, self.caller, 16);
    }
}

/// How the hash of a caller is written.
#[must_use]
pub fn hex(caller: u64) -> String {
    let mut text = String::with_capacity(16);
    hexadecimal(&mut text, caller, 16);
    text
}

fn add_time(state: &mut String, what: &str, ticks: Micros) {
    state.push_str(what);
    decimal(state, ticks / SECOND);
    state.push('.');
    millionths(state, ticks % SECOND);
    state.push('s');
}
