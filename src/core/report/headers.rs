//! What clients are told.

use super::{Record, Refusal, Report};
use crate::policy::LimitFields;
use crate::text::decimal;
use crate::time::{Micros, SECOND};

/// Takes headers, one after another: the name and the value.
pub type Add<'a> = &'a mut dyn FnMut(&'static str, &str);

impl Report {
    /// Headers for the upstream's response.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let (mut headers, mut text) = (Vec::new(), String::new());
        let add: Add = &mut |name, value| headers.push((name, value.to_owned()));
        match self.fields {
            LimitFields::Ietf => limits(&self.records, &mut text, add),
            LimitFields::XRateLimit => one(scarcest(&self.records), &mut text, add),
        }
        headers
    }
}

impl Refusal {
    /// Adds headers beside the configured ones. A calling Envoy does not retry what bears
    /// `x-envoy-ratelimited`; a request that can never be admitted gets no `retry-after`.
    ///
    /// They are written in `text`, one after another: room for each of them would take longer to find than to fill.
    pub fn add_headers(&self, text: &mut String, add: Add) {
        match self.response.fields {
            LimitFields::Ietf => limits(&self.records, text, add),
            LimitFields::XRateLimit => {
                let by = Some(&self.by).filter(|by| by.shown);
                one(by.or_else(|| scarcest(&self.records)), text, add);
            }
        }
        add("x-envoy-ratelimited", "true");
        if let Some(seconds) = self.retry_after() {
            add("retry-after", number(seconds, text));
        }
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
fn one(record: Option<&Record>, text: &mut String, add: Add) {
    let Some(record) = record else { return };
    add("x-ratelimit-limit", number(record.policy.0, text));
    add("x-ratelimit-remaining", number(record.remaining, text));
    if let Some(ticks) = record.reset {
        add("x-ratelimit-reset", number(seconds(ticks), text));
    }
}

fn number(number: u64, text: &mut String) -> &str {
    text.clear();
    decimal(text, number);
    text
}

/// Adds `ratelimit-policy` and `ratelimit` as in draft-ietf-httpapi-ratelimit-headers-10, if a rule shows.
fn limits(records: &[Record], text: &mut String, add: Add) {
    for (name, is_policy) in [("ratelimit-policy", true), ("ratelimit", false)] {
        text.clear();
        for record in records.iter().filter(|record| record.shown) {
            let begin = if text.is_empty() { "\"" } else { ", \"" };
            [begin, &record.rule, "\""].iter().for_each(|part| text.push_str(part));
            if is_policy { record.add_policy(text) } else { record.add_limit(text) }
        }
        if !text.is_empty() {
            add(name, text);
        }
    }
}

impl Record {
    /// What the rule allows.
    fn add_policy(&self, text: &mut String) {
        let (quota, window) = self.policy;
        text.push_str(";q=");
        decimal(text, quota);
        match window {
            0 => text.push_str(";qu=\"concurrent-requests\""),
            window => {
                text.push_str(";w=");
                decimal(text, seconds(window));
            }
        }
    }

    /// What is left of it.
    fn add_limit(&self, text: &mut String) {
        text.push_str(";r=");
        decimal(text, self.remaining);
        if let Some(ticks) = self.reset {
            text.push_str(";t=");
            decimal(text, seconds(ticks));
        }
    }
}

/// Whole seconds, rounded up; at least one.
fn seconds(ticks: Micros) -> u64 {
    ticks.div_ceil(SECOND).max(1)
}
