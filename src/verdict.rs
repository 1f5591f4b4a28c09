//! What becomes of a request, and how it is told to the client and to the access log.

use std::fmt::Write;
use std::rc::Rc;

use crate::config::policy::Response;
use crate::decision::Retry;
use crate::time::{Micros, SECOND};

/// The decision of all rules about one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The request goes on.
    Admit {
        /// `ratelimit` fields for the response, where they were asked for.
        fields: Vec<(&'static str, String)>,
        /// Filter state for the access log, where it was asked for or a shadow rule refused.
        state: Option<String>,
    },
    /// The request is answered with a refusal.
    Refuse(Refusal),
}

impl Verdict {
    /// The request goes on and nothing is reported.
    pub const PASS: Verdict = Verdict::Admit { fields: Vec::new(), state: None };
}

/// The answer to a refused request.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Status, body and headers as configured.
    pub response: Rc<Response>,
    /// Headers that say why and when to come back.
    pub fields: Vec<(&'static str, String)>,
    /// Filter state for the access log.
    pub state: String,
    /// A line for the log, where it was asked for and not already written this second.
    pub log: Option<String>,
}

/// One rule as it stands after a decision, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing<'a> {
    /// The rule's name.
    pub rule: &'a str,
    /// Quota in permits and window in ticks.
    pub policy: (u64, Micros),
    /// Permits left.
    pub remaining: u64,
    /// When a refused request would be admitted.
    pub retry: Option<Retry>,
}

/// `ratelimit-policy` and `ratelimit` as in draft-ietf-httpapi-ratelimit-headers-10.
#[must_use]
pub fn fields(standings: &[Standing<'_>]) -> Vec<(&'static str, String)> {
    if standings.is_empty() {
        return Vec::new();
    }
    let (mut policy, mut limit) = (String::new(), String::new());
    for (number, standing) in standings.iter().enumerate() {
        let comma = if number == 0 { "" } else { ", " };
        let (quota, window) = standing.policy;
        let window = seconds(window);
        // Writing to a string cannot fail.
        _ = write!(policy, "{comma}\"{}\";q={quota};w={window}", standing.rule);
        _ = write!(limit, "{comma}\"{}\";r={}", standing.rule, standing.remaining);
        if let Some(Retry::After(ticks)) = standing.retry {
            _ = write!(limit, ";t={}", seconds(ticks));
        }
    }
    vec![("ratelimit-policy", policy), ("ratelimit", limit)]
}

/// Headers of a refusal beyond [`fields`]. A calling Envoy does not retry what bears
/// `x-envoy-ratelimited`; a request that can never be admitted gets no `retry-after`.
#[must_use]
pub fn refusal_fields(retry: Retry) -> Vec<(&'static str, String)> {
    let mut fields = vec![("x-envoy-ratelimited", "true".to_owned())];
    if let Retry::After(ticks) = retry {
        fields.push(("retry-after", seconds(ticks).to_string()));
    }
    fields
}

/// Filter state `wasm.diana`: what happened to the request, and by which rule.
#[must_use]
pub fn state(outcome: &str, rule: &str, mode: &str, retry: Option<Retry>, caller: u64) -> String {
    let mut state = format!("{outcome} rule={rule} scope=local mode={mode}");
    // Writing to a string cannot fail.
    _ = match retry {
        None => Ok(()),
        Some(Retry::Never) => write!(state, " wait=never"),
        Some(Retry::After(ticks)) => {
            write!(state, " wait={}.{:06}s", ticks / SECOND, ticks % SECOND)
        }
    };
    _ = write!(state, " key={caller:016x}");
    state
}

/// Whole seconds, rounded up; at least one.
fn seconds(ticks: Micros) -> u64 {
    ticks.div_ceil(SECOND).max(1)
}
