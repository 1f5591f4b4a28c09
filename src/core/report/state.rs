//! Filter state `wasm.diana` for the access log, which is also the line in the log: what happened to the
//! request, and by which rule.

use super::{Outcome, Record};
use crate::key::Key;
use crate::time::{Micros, SECOND};
use diana_text::Text;

impl Record {
    /// What happened to a request that is reported under this rule.
    #[must_use]
    pub fn state(&self) -> String {
        let mut state = Text::NONE;
        self.add_state(&mut state);
        state.as_str().to_owned()
    }

    /// The same, added to a text.
    pub fn add_state(&self, state: &mut Text) {
        let outcome = match self.outcome {
            Outcome::Admitted { wait: 0 } => "admitted rule=",
            Outcome::Admitted { .. } if self.shadow => "shadow-held rule=",
            Outcome::Admitted { .. } => "held rule=",
            _ if self.shadow => "shadow rule=",
            Outcome::Refused(_) => "refused rule=",
            Outcome::Banned(_) => "banned rule=",
            Outcome::Unavailable(_) => "unavailable rule=",
        };
        state.push(outcome);
        state.push(&self.rule);
        state.push(" scope=");
        state.push(self.scope.name());
        state.push(if self.shadow { " mode=shadow" } else { " mode=enforced" });
        if let Some(plan) = &self.plan {
            state.push(" plan=");
            state.push(plan);
        }
        let wait = match self.outcome {
            Outcome::Admitted { wait: 0 } => None,
            Outcome::Admitted { wait } | Outcome::Banned(wait) | Outcome::Unavailable(wait) => {
                Some(Some(wait))
            }
            Outcome::Refused(retry) => Some(retry.ticks()),
        };
        let limit = match wait {
            None => " limit=",
            Some(None) => " wait=never limit=",
            Some(Some(wait)) => {
                add_time(state, " wait=", wait);
                "s limit="
            }
        };
        state.push(limit);
        state.decimal(self.policy.0);
        if let Some(left) = self.remaining {
            state.push(" remaining=");
            state.decimal(left);
        }
        let key = match self.reset {
            None => " key=",
            Some(ticks) => {
                add_time(state, " reset=", ticks);
                "s key="
            }
        };
        state.push(key);
        add_key(state, self.caller);
    }
}

/// A caller's key in 32 hexadecimal digits. All of them are needed: the second half chooses the slot in shared data.
#[must_use]
pub fn spell_key(caller: Key) -> String {
    let mut text = Text::NONE;
    add_key(&mut text, caller);
    text.as_str().to_owned()
}

/// The key that [`spell_key`] writes so.
#[must_use]
pub fn read_key(text: &[u8]) -> Option<Key> {
    let is_hex = text.len() == 32 && text.iter().all(u8::is_ascii_hexdigit);
    let (first, second) = str::from_utf8(text).ok().filter(|_| is_hex)?.split_at_checked(16)?;
    let half = |digits| u64::from_str_radix(digits, 16).ok();
    Some(Key { hash: half(first)?, second_hash: half(second)? })
}

fn add_key(text: &mut Text, caller: Key) {
    text.hexadecimal(caller.hash, 16);
    text.hexadecimal(caller.second_hash, 16);
}

/// Adds seconds, without their unit.
fn add_time(state: &mut Text, what: &str, ticks: Micros) {
    state.push(what);
    state.decimal(ticks / SECOND);
    state.millionths(ticks % SECOND);
}
