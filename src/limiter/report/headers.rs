//! Headers of responses that report limits.

use std::borrow::Cow;

use super::{Record, Refusal, Report};
use diana_policy::number::push_decimal;
use diana_policy::time::{Micros, SECOND};
use diana_policy::{LimitFields, X_RATE_LIMIT};

/// A header: its name and value.
type Field = (&'static str, Cow<'static, str>);

/// The fields with the limits, and those that a refusal has besides.
const OWN: usize = 8;

/// The header by which a response forbids caches to store it.
const CACHE_CONTROL: &str = "cache-control";

impl Report {
    /// Headers to add to the upstream's response.
    #[must_use]
    pub fn headers(&self) -> Vec<Field> {
        let mut headers = Vec::new();
        match self.fields {
            LimitFields::Ietf => limits(&self.records, &mut headers),
            LimitFields::XRateLimit => one(scarcest(&self.records), &mut headers),
        }
        headers
    }
}

impl Refusal {
    /// Headers to add to the configured ones. A calling Envoy does not retry responses with
    /// `x-envoy-ratelimited`. As in Envoy's own filter, the response has it only if a limit is
    /// exceeded, since another gateway may reach Redis. A request that can never be admitted gets
    /// no `retry-after`. Caches store no refusal, unless the configured headers decide about that:
    /// a refusal of an RPC client may have status 200, and caches store several of the other
    /// statuses.
    #[must_use]
    pub fn headers(&self) -> Vec<Field> {
        let configured = &self.response.headers;
        let mut headers = Vec::with_capacity(OWN + configured.len());
        match self.response.fields {
            LimitFields::Ietf => limits(self.records(), &mut headers),
            LimitFields::XRateLimit => {
                let by = Some(&self.by).filter(|by| by.shown);
                one(by.or_else(|| scarcest(self.records())), &mut headers);
            }
        }
        if !self.is_unavailable() {
            headers.push(("x-envoy-ratelimited", "true".into()));
        }
        if let Some(seconds) = self.retry_after() {
            headers.push(("retry-after", decimal(seconds)));
        }
        if !configured.iter().any(|(name, _)| name == CACHE_CONTROL) {
            headers.push((CACHE_CONTROL, "no-store".into()));
        }
        headers
    }

    /// The `retry-after` in seconds, if a retry can succeed.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        self.retry.ticks().map(|ticks| seconds(ticks.saturating_add(self.jitter.ticks())))
    }
}

/// The visible rule with the fewest remaining permits.
fn scarcest(records: &[Record]) -> Option<&Record> {
    records.iter().filter(|record| record.shown).min_by_key(|record| record.scarcity())
}

/// Adds the `x-ratelimit-*` headers, for a single rule.
fn one(record: Option<&Record>, headers: &mut Vec<Field>) {
    let Some(record) = record else { return };
    let [limit, remaining, reset] = X_RATE_LIMIT;
    headers.push((limit, decimal(record.policy.0)));
    if let Some(left) = record.outcome.remaining() {
        headers.push((remaining, decimal(left)));
    }
    if let Some(ticks) = record.outcome.reset() {
        headers.push((reset, decimal(seconds(ticks))));
    }
}

/// Adds `ratelimit-policy` and `ratelimit` as in draft-ietf-httpapi-ratelimit-headers-11, each if a
/// rule has such an item. Only this function and its callees contain the names of the draft's
/// parameters, since its editors are about to rename them.
fn limits(records: &[Record], headers: &mut Vec<Field>) {
    let empty = || String::with_capacity(64);
    let (mut policies, mut limits) = (empty(), empty());
    for record in records.iter().filter(|record| record.shown) {
        add_item(&mut policies, &record.rule);
        record.add_policy(&mut policies);
        if let Some(left) = record.outcome.remaining() {
            add_item(&mut limits, &record.rule);
            record.add_limit(left, &mut limits);
        }
    }
    let fields = [("ratelimit-policy", policies), ("ratelimit", limits)];
    let fields = fields.into_iter().filter(|(_, items)| !items.is_empty());
    headers.extend(fields.map(|(name, items)| (name, items.into())));
}

/// Starts an item of a list with the name of a rule.
fn add_item(list: &mut String, rule: &str) {
    list.push_str(if list.is_empty() { "\"" } else { ", \"" });
    list.push_str(rule);
}

impl Record {
    /// Orders records by the remaining permits; unknown numbers come last.
    pub(crate) fn scarcity(&self) -> (bool, Option<u64>) {
        let remaining = self.outcome.remaining();
        (remaining.is_none(), remaining)
    }

    /// Adds the rule's limit.
    fn add_policy(&self, text: &mut String) {
        let (quota, window) = self.policy;
        text.push_str("\";q=");
        push_decimal(text, quota);
        match window {
            0 => text.push_str(";qu=\"concurrent-requests\""),
            window => {
                text.push_str(";w=");
                push_decimal(text, seconds(window));
            }
        }
    }

    /// Adds the remaining permits.
    fn add_limit(&self, left: u64, text: &mut String) {
        text.push_str("\";r=");
        push_decimal(text, left);
        if let Some(ticks) = self.outcome.reset() {
            text.push_str(";t=");
            push_decimal(text, seconds(ticks));
        }
    }
}

fn decimal(number: u64) -> Cow<'static, str> {
    let mut text = String::new();
    push_decimal(&mut text, number);
    text.into()
}

/// Whole seconds, rounded up; at least one.
pub(super) fn seconds(ticks: Micros) -> u64 {
    ticks.div_ceil(SECOND).max(1)
}
