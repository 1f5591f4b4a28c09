//! What clients are told.

use super::{Record, Refusal, Report};
use crate::policy::LimitFields;
use crate::time::{Micros, SECOND};
use diana_text::Text;

/// Takes headers, one after another: the name, and what writes the value.
pub type Add<'a> = &'a mut dyn FnMut(&'static str, &dyn Fn(&mut Text));

impl Report {
    /// Headers for the upstream's response.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        let add: Add = &mut |name, write| {
            let mut value = Text::NONE;
            write(&mut value);
            headers.push((name, value.as_str().to_owned()));
        };
        match self.fields {
            LimitFields::Ietf => limits(&self.records, add),
            LimitFields::XRateLimit => one(scarcest(&self.records), add),
        }
        headers
    }
}

impl Refusal {
    /// Adds headers beside the configured ones. A calling Envoy does not retry answers with
    /// `x-envoy-ratelimited`, so the answer has it only if a limit is exceeded, as in Envoy's own filter: another gateway may
    /// reach Redis. A request that can never be admitted gets no `retry-after`.
    pub fn add_headers(&self, add: Add) {
        match self.response.fields {
            LimitFields::Ietf => limits(self.records(), add),
            LimitFields::XRateLimit => {
                let by = Some(&self.by).filter(|by| by.shown);
                one(by.or_else(|| scarcest(self.records())), add);
            }
        }
        if !self.is_unavailable() {
            add("x-envoy-ratelimited", &|value| value.push("true"));
        }
        if let Some(seconds) = self.retry_after() {
            add("retry-after", &|value| value.decimal(seconds));
        }
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

/// Adds `x-ratelimit-limit` and its like, which tell of a single rule.
fn one(record: Option<&Record>, add: Add) {
    let Some(record) = record else { return };
    add("x-ratelimit-limit", &|value| value.decimal(record.policy.0));
    if let Some(left) = record.remaining {
        add("x-ratelimit-remaining", &|value| value.decimal(left));
    }
    if let Some(ticks) = record.reset {
        add("x-ratelimit-reset", &|value| value.decimal(seconds(ticks)));
    }
}

/// Adds `ratelimit-policy` and `ratelimit` as in draft-ietf-httpapi-ratelimit-headers-11, each if a rule has such an item. Only
/// this function and those that it calls name the draft's parameters, since its editors are about to rename them.
fn limits(records: &[Record], add: Add) {
    let shown = || records.iter().filter(|record| record.shown);
    let known = || shown().filter(|record| record.remaining.is_some());
    if shown().next().is_some() {
        add("ratelimit-policy", &|value| list(shown(), value, Record::add_policy));
    }
    if known().next().is_some() {
        add("ratelimit", &|value| list(known(), value, Record::add_limit));
    }
}

/// Writes an item for each record, behind the name of its rule.
fn list<'r>(
    records: impl Iterator<Item = &'r Record>,
    value: &mut Text,
    tell: impl Fn(&Record, &mut Text),
) {
    let mut begin = "\"";
    for record in records {
        value.push(begin);
        value.push(&record.rule);
        tell(record, value);
        begin = ", \"";
    }
}

impl Record {
    /// Orders records by the remaining permits; unknown numbers come last.
    pub(crate) fn scarcity(&self) -> (bool, Option<u64>) {
        (self.remaining.is_none(), self.remaining)
    }

    /// What the rule allows.
    fn add_policy(&self, text: &mut Text) {
        let (quota, window) = self.policy;
        text.push("\";q=");
        text.decimal(quota);
        match window {
            0 => text.push(";qu=\"concurrent-requests\""),
            window => {
                text.push(";w=");
                text.decimal(seconds(window));
            }
        }
    }

    /// The remaining permits, which are known.
    fn add_limit(&self, text: &mut Text) {
        text.push("\";r=");
        text.decimal(self.remaining.unwrap_or(0));
        if let Some(ticks) = self.reset {
            text.push(";t=");
            text.decimal(seconds(ticks));
        }
    }
}

/// Whole seconds, rounded up; at least one.
pub(super) fn seconds(ticks: Micros) -> u64 {
    ticks.div_ceil(SECOND).max(1)
}
