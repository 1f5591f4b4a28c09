//! Filter state `wasm.diana` for the access log, also used as the log line: the decision on a
//! request and the rule that made it.

use super::{Outcome, Record};
use diana_policy::key::Key;
use diana_policy::number::{push_decimal, push_hex, push_seconds};
use diana_policy::time::Micros;

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
            Outcome::Refused(_) if self.shadow => "shadow",
            Outcome::Refused(refused) => refused.reason.name(),
        };
        let mode = if self.shadow { "shadow" } else { "enforced" };
        let mut state = String::with_capacity(LENGTH);
        for piece in [outcome, " rule=", &self.rule, " scope=", self.scope.name(), " mode=", mode] {
            state.push_str(piece);
        }
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
            Some(Some(wait)) => add_time(&mut state, " wait=", wait),
        }
        state.push_str(" limit=");
        push_decimal(&mut state, self.policy.0);
        if let Some(left) = self.outcome.remaining() {
            state.push_str(" remaining=");
            push_decimal(&mut state, left);
        }
        if let Some(ticks) = self.outcome.reset() {
            add_time(&mut state, " reset=", ticks);
        }
        state.push_str(" key=");
        add_key(&mut state, self.caller);
        state
    }
}

/// Adds a time in seconds.
fn add_time(state: &mut String, what: &str, ticks: Micros) {
    state.push_str(what);
    push_seconds(state, ticks);
    state.push('s');
}

/// A caller's key in 32 hexadecimal digits. All of them are needed: the second half determines the
/// slot in shared data.
#[must_use]
pub fn spell_key(caller: Key) -> String {
    let mut text = String::with_capacity(32);
    add_key(&mut text, caller);
    text
}

fn add_key(text: &mut String, caller: Key) {
    push_hex(text, caller.hash);
    push_hex(text, caller.second_hash);
}

/// Parses a key written by [`spell_key`].
#[must_use]
pub fn read_key(text: &[u8]) -> Option<Key> {
    let is_hex = text.len() == 32 && text.iter().all(u8::is_ascii_hexdigit);
    let (first, second) = str::from_utf8(text).ok().filter(|_| is_hex)?.split_at_checked(16)?;
    let half = |digits| u64::from_str_radix(digits, 16).ok();
    Some(Key { hash: half(first)?, second_hash: half(second)? })
}
