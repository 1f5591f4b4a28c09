//! What becomes of a request, and how it is told to the client and to the access log.

use std::rc::Rc;

use crate::decision::Retry;
use crate::key::Key;
use crate::policy::Response;
use crate::text::{decimal, digits};
use crate::time::{Micros, SECOND};

/// The decision of all rules about one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The request goes on.
    Admit(Report),
    /// The request goes on later.
    Hold(Held),
    /// The request is answered with a refusal.
    Refuse(Refusal),
    /// The request waits until the fleet's store has answered, or for permits that others hold.
    Ask {
        /// Under which the answer comes.
        ticket: u64,
    },
}

impl Verdict {
    /// The request goes on and nothing is reported.
    pub const PASS: Verdict = Verdict::Admit(Report { fields: Vec::new(), state: None });

    /// Whether it is [`Verdict::PASS`].
    #[must_use]
    #[inline]
    pub fn is_pass(&self) -> bool {
        matches!(self, Verdict::Admit(report) if report.state.is_none() && report.fields.is_empty())
    }
}

/// What is told of a request that goes on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// `ratelimit` fields for the response, where they were asked for.
    pub fields: Vec<(&'static str, String)>,
    /// Filter state for the access log, where it was asked for, a rule holds the request, or one in
    /// shadow refused it.
    pub state: Option<String>,
}

/// A request that waits for its turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// The monotonic instant at which it may leave, and not earlier.
    pub until: Micros,
    /// The line in which it moves up.
    pub line: Option<Line>,
    /// Its places, to be given back if the client leaves.
    pub seats: Vec<Seat>,
    /// What is told of it.
    pub report: Report,
}

/// A line of requests of one caller under one rule of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The rule's number in its engine.
    pub rule: usize,
    /// The caller.
    pub key: Key,
}

/// A place in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// The rule's number in its engine.
    pub rule: usize,
    /// The caller.
    pub key: Key,
    /// Tells the place from others.
    pub place: u64,
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
    // Grown bit by bit, both would be copied several times.
    let room = standings.iter().map(|standing| standing.rule.len() + 48).sum();
    let (mut policy, mut limit) = (String::with_capacity(room), String::with_capacity(room));
    for standing in standings {
        let (quota, window) = standing.policy;
        for text in [&mut policy, &mut limit] {
            let begin = if text.is_empty() { "\"" } else { ", \"" };
            [begin, standing.rule, "\""].iter().for_each(|part| text.push_str(part));
        }
        for (name, value) in [(";q=", quota), (";w=", seconds(window))] {
            policy.push_str(name);
            decimal(&mut policy, value);
        }
        limit.push_str(";r=");
        decimal(&mut limit, standing.remaining);
        if let Some(Retry::After(ticks)) = standing.retry {
            limit.push_str(";t=");
            decimal(&mut limit, seconds(ticks));
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
        let mut text = String::with_capacity(20);
        decimal(&mut text, seconds(ticks));
        fields.push(("retry-after", text));
    }
    fields
}

/// Filter state `wasm.diana`: what happened to the request, and by which rule.
#[must_use]
pub fn state(
    outcome: &str,
    rule: &str,
    scope: &str,
    mode: &str,
    wait: Option<Retry>,
    caller: u64,
) -> String {
    let mut state = String::with_capacity(rule.len() + 112);
    let parts = [outcome, " rule=", rule, " scope=", scope, " mode=", mode];
    parts.iter().for_each(|part| state.push_str(part));
    match wait {
        None => {}
        Some(Retry::Never) => state.push_str(" wait=never"),
        Some(Retry::After(ticks)) => {
            state.push_str(" wait=");
            decimal(&mut state, ticks / SECOND);
            state.push('.');
            digits(&mut state, ticks % SECOND, 10, SECOND / 10);
            state.push('s');
        }
    }
    state.push_str(" key=");
    digits(&mut state, caller, 16, 1 << 60);
    state
}

/// Whole seconds, rounded up; at least one.
fn seconds(ticks: Micros) -> u64 {
    ticks.div_ceil(SECOND).max(1)
}
