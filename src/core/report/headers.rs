//! What clients are told.

use std::fmt::Write as _;

use super::{Record, Refusal, Report};
use crate::policy::LimitFields;
use crate::time::{Micros, SECOND};

/// A header: its name and value.
pub type Header = (&'static str, String);

impl Report {
    /// Headers for the upstream's response.
    #[must_use]
    pub fn headers(&self) -> Vec<Header> {
        match self.fields {
            LimitFields::Ietf => limits(&self.records),
            LimitFields::XRateLimit => one(scarcest(&self.records)),
        }
    }
}

impl Refusal {
    /// Headers beside the configured ones. A calling Envoy does not retry answers with
    /// `x-envoy-ratelimited`, so the answer has it only if a limit is exceeded, as in Envoy's own filter: another gateway may
    /// reach Redis. A request that can never be admitted gets no `retry-after`.
    #[must_use]
    pub fn headers(&self) -> Vec<Header> {
        let mut headers = match self.response.fields {
            LimitFields::Ietf => limits(self.records()),
            LimitFields::XRateLimit => {
                let by = Some(&self.by).filter(|by| by.shown);
                one(by.or_else(|| scarcest(self.records())))
            }
        };
        if !self.is_unavailable() {
            headers.push(("x-envoy-ratelimited", "true".into()));
        }
        if let Some(seconds) = self.retry_after() {
            headers.push(("retry-after", seconds.to_string()));
        }
        headers
    }

    /// Seconds until clients are told to come back, if they ever are.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        self.retry.ticks().map(|ticks| seconds(ticks.saturating_add(self.jitter)))
    }
}

/// The rule that shows and has the least left, as far as that is known.
fn scarcest(records: &[Record]) -> Option<&Record> {
    records.iter().filter(|record| record.shown).min_by_key(|record| record.scarcity())
}

/// `x-ratelimit-limit` and its like, which tell of a single rule.
fn one(record: Option<&Record>) -> Vec<Header> {
    let Some(record) = record else { return Vec::new() };
    let mut headers = vec![("x-ratelimit-limit", record.policy.0.to_string())];
    if let Some(left) = record.remaining {
        headers.push(("x-ratelimit-remaining", left.to_string()));
    }
    if let Some(ticks) = record.reset {
        headers.push(("x-ratelimit-reset", seconds(ticks).to_string()));
    }
    headers
}

/// `ratelimit-policy` and `ratelimit` as in draft-ietf-httpapi-ratelimit-headers-11, each if a rule has such an item. Only
/// this function and those that it calls name the draft's parameters, since its editors are about to rename them.
fn limits(records: &[Record]) -> Vec<Header> {
    let (mut policies, mut limits) = (String::new(), String::new());
    for record in records.iter().filter(|record| record.shown) {
        add_item(&mut policies, &record.rule);
        record.add_policy(&mut policies);
        if let Some(left) = record.remaining {
            add_item(&mut limits, &record.rule);
            record.add_limit(left, &mut limits);
        }
    }
    let headers = [("ratelimit-policy", policies), ("ratelimit", limits)];
    headers.into_iter().filter(|(_, items)| !items.is_empty()).collect()
}

/// Begins an item of a list with the name of a rule.
fn add_item(list: &mut String, rule: &str) {
    list.push_str(if list.is_empty() { "\"" } else { ", \"" });
    list.push_str(rule);
}

impl Record {
    /// Orders records by the remaining permits; unknown numbers come last.
    pub(crate) fn scarcity(&self) -> (bool, Option<u64>) {
        (self.remaining.is_none(), self.remaining)
    }

    /// Adds what the rule allows.
    fn add_policy(&self, text: &mut String) {
        let (quota, window) = self.policy;
        // Writing to a string cannot fail.
        _ = match window {
            0 => write!(text, "\";q={quota};qu=\"concurrent-requests\""),
            window => write!(text, "\";q={quota};w={}", seconds(window)),
        };
    }

    /// Adds the remaining permits.
    fn add_limit(&self, left: u64, text: &mut String) {
        _ = write!(text, "\";r={left}");
        if let Some(ticks) = self.reset {
            _ = write!(text, ";t={}", seconds(ticks));
        }
    }
}

/// Whole seconds, rounded up; at least one.
pub(super) fn seconds(ticks: Micros) -> u64 {
    ticks.div_ceil(SECOND).max(1)
}
