//! What clients are told.

use super::{Record, Refusal, Report};
use crate::decision::Retry;
use crate::text::decimal;
use crate::time::{Micros, SECOND};

impl Report {
    /// Headers for the upstream's response.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        limits(&self.records, &mut headers);
        headers
    }
}

impl Refusal {
    /// Headers beside the configured ones. A calling Envoy does not retry what bears
    /// `x-envoy-ratelimited`; a request that can never be admitted gets no `retry-after`.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::with_capacity(4);
        limits(&self.records, &mut headers);
        headers.push(("x-envoy-ratelimited", "true".to_owned()));
        if let Some(ticks) = self.retry.ticks() {
            let mut text = String::with_capacity(20);
            decimal(&mut text, seconds(ticks));
            headers.push(("retry-after", text));
        }
        headers
    }
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
        if let Some(ticks) = record.outcome.retry().and_then(Retry::ticks) {
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
