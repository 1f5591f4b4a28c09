//! What clients are told.

use super::{Record, Refusal, Report};
use crate::policy::LimitFields;
use crate::text::decimal;
use crate::time::{Micros, SECOND};

impl Report {
    /// Headers for the upstream's response.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        match self.fields {
            LimitFields::Ietf => limits(&self.records, &mut headers),
            LimitFields::XRateLimit => one(scarcest(&self.records), &mut headers),
        }
        headers
    }
}

impl Refusal {
    /// Headers beside the configured ones. A calling Envoy does not retry what bears
    /// `x-envoy-ratelimited`; a request that can never be admitted gets no `retry-after`.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::with_capacity(5);
        match self.response.fields {
            LimitFields::Ietf => limits(&self.records, &mut headers),
            LimitFields::XRateLimit => {
                let by = Some(&self.by).filter(|by| by.shown);
                one(by.or_else(|| scarcest(&self.records)), &mut headers);
            }
        }
        headers.push(("x-envoy-ratelimited", "true".to_owned()));
        headers.extend(self.retry_after().map(|seconds| ("retry-after", number(seconds))));
        headers
    }

    /// Seconds until clients are told to come back, if they ever are.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        self.retry.ticks().map(|ticks| seconds(ticks.saturating_add(self.jitter)))
    }
}

/// The rule that shows and has the least left.
fn scarcest(records: &[Record]) -> Option<&Record> {
    records.iter().filter(|record| record.shown).min_by_key(|record| record.remaining)
}

/// Adds `x-ratelimit-limit` and its like, which tell of a single rule.
fn one(record: Option<&Record>, headers: &mut Vec<(&'static str, String)>) {
    let Some(record) = record else { return };
    headers.push(("x-ratelimit-limit", number(record.policy.0)));
    headers.push(("x-ratelimit-remaining", number(record.remaining)));
    headers.extend(record.reset.map(|ticks| ("x-ratelimit-reset", number(seconds(ticks)))));
}

fn number(number: u64) -> String {
    let mut text = String::with_capacity(20);
    decimal(&mut text, number);
    text
}

/// Adds `ratelimit-policy` and `ratelimit` as in draft-ietf-httpapi-ratelimit-headers-10, if a rule shows.
fn limits(records: &[Record], headers: &mut Vec<(&'static str, String)>) {
    let shown = || records.iter().filter(|record| record.shown);
    // Grown bit by bit, both would be copied several times.
    let room = shown().map(|record| record.rule.len() + 48).sum();
    if room == 0 {
        return;
    }
    let (mut policy, mut limit) = (String::with_capacity(room), String::with_capacity(room));
    for record in shown() {
        let (quota, window) = record.policy;
        for text in [&mut policy, &mut limit] {
            let begin = if text.is_empty() { "\"" } else { ", \"" };
            [begin, &record.rule, "\""].iter().for_each(|part| text.push_str(part));
        }
        policy.push_str(";q=");
        decimal(&mut policy, quota);
        match window {
            0 => policy.push_str(";qu=\"concurrent-requests\""),
            window => {
                policy.push_str(";w=");
                decimal(&mut policy, seconds(window));
            }
        }
        limit.push_str(";r=");
        decimal(&mut limit, record.remaining);
        if let Some(ticks) = record.reset {
            limit.push_str(";t=");
            decimal(&mut limit, seconds(ticks));
        }
    }
    headers.extend([("ratelimit-policy", policy), ("ratelimit", limit)]);
}

/// Whole seconds, rounded up; at least one.
fn seconds(ticks: Micros) -> u64 {
    ticks.div_ceil(SECOND).max(1)
}
