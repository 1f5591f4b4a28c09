//! Headers of responses that report limits.

use super::{Record, Refusal, Report};
use diana_policy::LimitFields;
use diana_policy::headers::Headers;
use diana_policy::names;
use diana_policy::number::push_decimal;
use diana_policy::time::{Micros, SECOND};

/// The fields with the limits, those that a refusal has besides, and their usual size in bytes. An
/// allocation of more than 240 bytes takes longer.
const OWN: (usize, usize) = (8, 192);

/// The header by which a response forbids caches to store it.
const CACHE_CONTROL: &str = "cache-control";

/// The longest delay in a refusal. Timers of JavaScript have 31 bits for
/// milliseconds, and end at once beyond.
const LONGEST: Micros = 24 * 86_400 * SECOND;

impl Report {
    /// Headers to add to the upstream's response.
    #[must_use]
    pub fn headers(&self) -> Headers {
        let mut headers = Headers::default();
        match self.fields.form.single() {
            None => limits(&self.records, 0, &mut headers),
            Some(names) => {
                let reset = reset_from(self.fields, self.wall);
                one(scarcest(&self.records), names, (reset, 0), &mut headers);
            }
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
    pub fn headers(&self) -> Headers {
        let configured = &self.response.headers;
        let (number, bytes) = OWN;
        let mut headers = Headers::with_capacity(number + configured.len(), bytes);
        let fields = self.response.fields;
        let jitter = self.jitter.ticks();
        match fields.form.single() {
            None => limits(self.records(), jitter, &mut headers),
            Some(names) => {
                let by = Some(&self.by).filter(|by| by.shown);
                let by = by.or_else(|| scarcest(self.records()));
                one(by, names, (reset_from(fields, self.wall), jitter), &mut headers);
            }
        }
        if !self.is_unavailable() {
            headers.push("x-envoy-ratelimited", "true");
        }
        if let Some(seconds) = self.retry_after() {
            headers.write("retry-after", |text| push_decimal(text, seconds));
        }
        if !configured.iter().any(|(name, _)| name == CACHE_CONTROL) {
            headers.push(CACHE_CONTROL, "no-store");
        }
        headers
    }

    /// The `retry-after` in seconds, if a retry can succeed.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        self.delay().map(seconds)
    }

    /// The ticks after which a client may retry, with the jitter, at most [`LONGEST`]. `None` if no
    /// retry can succeed.
    pub(super) fn delay(&self) -> Option<Micros> {
        let ticks = self.retry.ticks()?;
        Some(ticks.saturating_add(self.jitter.ticks()).min(LONGEST))
    }
}

/// The instant that a reset is counted from, in ticks: the epoch, or else now.
fn reset_from(fields: LimitFields, wall: Micros) -> Micros {
    if fields.is_unix { wall } else { 0 }
}

/// The visible rule with the fewest remaining permits.
fn scarcest(records: &[Record]) -> Option<&Record> {
    records.iter().filter(|record| record.shown).min_by_key(|record| record.scarcity())
}

/// Adds the headers for a single rule. `from` is the instant that the reset is counted from, and
/// `jitter` is added to that of a refusal, both in ticks.
fn one(
    record: Option<&Record>,
    [limit, remaining, reset]: [&'static str; 3],
    (from, jitter): (Micros, Micros),
    headers: &mut Headers,
) {
    let Some(record) = record else { return };
    headers.write(limit, |text| push_decimal(text, record.policy.0));
    if let Some(left) = record.outcome.remaining() {
        headers.write(remaining, |text| push_decimal(text, left));
    }
    if let Some(ticks) = record.reset(jitter) {
        headers.write(reset, |text| push_decimal(text, seconds(ticks.saturating_add(from))));
    }
}

/// Adds `ratelimit-policy` and `ratelimit` as in draft-ietf-httpapi-ratelimit-headers-11, each if a
/// rule has such an item. Only this function and its callees contain the names of the draft's
/// parameters, since its editors are about to rename them. `jitter` is as in [`one`].
fn limits(records: &[Record], jitter: Micros, headers: &mut Headers) {
    let shown = || records.iter().filter(|record| record.shown);
    headers.write("ratelimit-policy", |items| {
        let mut is_first = true;
        for record in shown() {
            add_item(items, &mut is_first, &record.rule);
            record.add_policy(items);
        }
    });
    headers.write("ratelimit", |items| {
        let mut is_first = true;
        for record in shown() {
            if let Some(left) = record.outcome.remaining() {
                add_item(items, &mut is_first, &record.rule);
                record.add_limit(left, jitter, items);
            }
        }
    });
}

/// Starts an item of a list with the name of a rule.
fn add_item(list: &mut String, is_first: &mut bool, rule: &str) {
    list.push_str(if std::mem::take(is_first) { "\"" } else { ", \"" });
    list.push_str(names::for_clients(rule));
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

    /// The ticks of `Outcome::reset`, with the jitter in a refusal.
    fn reset(&self, jitter: Micros) -> Option<Micros> {
        let jitter = self.outcome.refused().map_or(0, |_| jitter);
        self.outcome.reset().map(|ticks| ticks.saturating_add(jitter))
    }

    /// Adds the remaining permits.
    fn add_limit(&self, left: u64, jitter: Micros, text: &mut String) {
        text.push_str("\";r=");
        push_decimal(text, left);
        if let Some(ticks) = self.reset(jitter) {
            text.push_str(";t=");
            push_decimal(text, seconds(ticks));
        }
    }
}

/// Whole seconds, rounded up; at least one.
pub(super) fn seconds(ticks: Micros) -> u64 {
    ticks.div_ceil(SECOND).max(1)
}
