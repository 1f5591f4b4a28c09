//! Filter state `wasm.diana` for the access log, which is also the line in the log: what happened to the
//! request, and by which rule.

use std::fmt::Write as _;

use super::{Outcome, Record};
use crate::key::Key;
use crate::time::{Micros, SECOND};

impl Record {
    /// What happened to a request that is reported under this rule.
    #[must_use]
    pub fn state(&self) -> String {
        let outcome = match self.outcome {
            Outcome::Admitted { wait: 0 } => "admitted rule=",
            Outcome::Admitted { .. } if self.shadow => "shadow-held rule=",
            Outcome::Admitted { .. } => "held rule=",
            _ if self.shadow => "shadow rule=",
            Outcome::Refused(_) => "refused rule=",
            Outcome::Banned(_) => "banned rule=",
            Outcome::Unavailable(_) => "unavailable rule=",
        };
        let mode = if self.shadow { "shadow" } else { "enforced" };
        let mut state = format!("{outcome}{} scope={} mode={mode}", self.rule, self.scope.name());
        // Writing to a string cannot fail.
        if let Some(plan) = &self.plan {
            _ = write!(state, " plan={plan}");
        }
        let wait = match self.outcome {
            Outcome::Admitted { wait: 0 } => None,
            Outcome::Admitted { wait } | Outcome::Banned(wait) | Outcome::Unavailable(wait) => {
                Some(Some(wait))
            }
            Outcome::Refused(retry) => Some(retry.ticks()),
        };
        match wait {
            None => {}
            Some(None) => state.push_str(" wait=never"),
            Some(Some(wait)) => _ = write!(state, " wait={}s", seconds(wait)),
        }
        _ = write!(state, " limit={}", self.policy.0);
        if let Some(left) = self.remaining {
            _ = write!(state, " remaining={left}");
        }
        if let Some(ticks) = self.reset {
            _ = write!(state, " reset={}s", seconds(ticks));
        }
        _ = write!(state, " key={}", spell_key(self.caller));
        state
    }
}

/// A caller's key in 32 hexadecimal digits. All of them are needed: the second half chooses the slot in shared data.
#[must_use]
pub fn spell_key(caller: Key) -> String {
    format!("{:016x}{:016x}", caller.hash, caller.second_hash)
}

/// The key that [`spell_key`] writes so.
#[must_use]
pub fn read_key(text: &[u8]) -> Option<Key> {
    let is_hex = text.len() == 32 && text.iter().all(u8::is_ascii_hexdigit);
    let (first, second) = str::from_utf8(text).ok().filter(|_| is_hex)?.split_at_checked(16)?;
    let half = |digits| u64::from_str_radix(digits, 16).ok();
    Some(Key { hash: half(first)?, second_hash: half(second)? })
}

/// Seconds with six decimals.
fn seconds(ticks: Micros) -> String {
    format!("{}.{:06}", ticks / SECOND, ticks % SECOND)
}
