//! Token buckets that refill continuously, by the values of requests.

use std::collections::BTreeMap;

use diana_policy::port::{Request, Values};
use diana_policy::tree::Tree;
use diana_replay::Arrival;
use hashbrown::HashMap;

use crate::key::KeySource;
use crate::model::{LimiterModel, ModelDecision};

/// The longest unit, in milliseconds.
const LONGEST_UNIT: u64 = 31 * 24 * 3600 * 1000;

/// The size of a bucket, and how it refills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketSize {
    /// Maximum number of tokens. None are there if it is zero.
    pub(crate) most: u64,
    /// Tokens that return in each interval.
    pub(crate) fill: u64,
    /// The interval in milliseconds.
    pub(crate) interval: u64,
}

impl BucketSize {
    /// The keys of a rule for a bucket.
    ///
    /// # Errors
    /// Why no rule expresses it.
    pub(crate) fn rule_keys(self, cost: u64) -> Result<Vec<(&'static str, Tree)>, String> {
        let whole = |number: u64| Tree::Int(i128::from(number));
        let BucketSize { most, fill, interval } = self;
        if most == 0 {
            return Ok(vec![("unit", "second".into()), ("rpu", whole(0))]);
        }
        // A unit has at least a second.
        let times = 1000_u64.div_ceil(interval.max(1)).max(1);
        let (unit, rpu) = (interval.saturating_mul(times), fill.saturating_mul(times));
        if interval == 0 || unit > LONGEST_UNIT {
            return Err(format!("its bucket refills in {interval} ms; a unit has 1 ms to 31 days"));
        }
        let unit = match unit {
            1000 => "second".into(),
            60_000 => "minute".into(),
            3_600_000 => "hour".into(),
            ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
            ms => format!("{ms}ms"),
        };
        let mut keys =
            vec![("unit", Tree::Text(unit)), ("rpu", whole(rpu)), ("algo", "token bucket".into())];
        if most != rpu {
            keys.push(("burst", whole(most)));
        }
        if cost != 1 {
            keys.push(("cost", whole(cost)));
        }
        Ok(keys)
    }
}

/// A bucket for each value of a key.
#[derive(Debug, Clone)]
pub(crate) struct Buckets {
    pub(crate) size: BucketSize,
    /// The values that form the key. None is one bucket.
    pub(crate) sources: Vec<KeySource>,
    /// The tokens of a request.
    pub(crate) cost: u64,
    /// The header that a request must have, if it has any.
    pub(crate) part: Option<String>,
    /// Maximum number of values. A further one replaces the one that was not used for longest.
    pub(crate) most_keys: usize,
    states: HashMap<Vec<u8>, RefillState>,
    /// The keys by their latest use.
    queue: BTreeMap<u64, Vec<u8>>,
    uses: u64,
}

#[derive(Debug, Clone, Copy)]
struct RefillState {
    /// Tokens, each in as many parts as the interval has microseconds.
    parts: u128,
    last: u64,
    used: u64,
}

impl Buckets {
    pub(crate) fn new(
        size: BucketSize,
        sources: Vec<KeySource>,
        cost: u64,
        most_keys: usize,
    ) -> Buckets {
        let (states, queue) = (HashMap::new(), BTreeMap::new());
        Buckets { size, sources, cost, part: None, most_keys, states, queue, uses: 0 }
    }

    /// The tokens that return in a second, to compare buckets.
    pub(crate) fn rate(&self) -> u64 {
        let BucketSize { fill, interval, .. } = self.size;
        fill.saturating_mul(1_000_000_000) / interval.max(1)
    }

    /// Takes the tokens of a request. Returns false if there are too few. One without a value passes.
    fn take(&mut self, request: &dyn Arrival) -> bool {
        let values: Vec<Vec<u8>> =
            self.sources.iter().map(|source| source.value(request)).collect();
        let is_other = |part: &String| Request::header(request, part) == Values::None;
        if values.iter().any(Vec::is_empty) || self.part.as_ref().is_some_and(is_other) {
            return true;
        }
        let (key, now) = (values.join(&0), request.at());
        let interval = u128::from(self.size.interval.max(1)) * 1000;
        let full = u128::from(self.size.most) * interval;
        self.uses += 1;
        let number = self.uses;
        let state = self.states.entry(key.clone());
        let state = state.or_insert(RefillState { parts: full, last: now, used: number });
        self.queue.remove(&state.used);
        self.queue.insert(number, key);
        state.used = number;
        let refill = u128::from(now.saturating_sub(state.last)) * u128::from(self.size.fill);
        state.parts = (state.parts + refill).min(full);
        state.last = now;
        let cost = u128::from(self.cost) * interval;
        let passes = state.parts >= cost && self.size.most > 0;
        if passes {
            state.parts -= cost;
        }
        if self.states.len() > self.most_keys
            && let Some((_, oldest)) = self.queue.pop_first()
        {
            self.states.remove(&oldest);
        }
        passes
    }
}

/// Buckets that a request pays one after the other: a refusal returns no tokens.
#[derive(Debug, Default, Clone)]
pub(crate) struct BucketsModel {
    pub(crate) buckets: Vec<Buckets>,
}

impl BucketsModel {
    /// The model of one bucket. None if it cannot be compared.
    pub(crate) fn of(buckets: Buckets) -> Option<Box<dyn LimiterModel>> {
        let is_comparable = buckets.sources.iter().all(KeySource::is_comparable);
        is_comparable
            .then(|| -> Box<dyn LimiterModel> { Box::new(BucketsModel { buckets: vec![buckets] }) })
    }
}

impl LimiterModel for BucketsModel {
    fn reset(&mut self) {
        for buckets in &mut self.buckets {
            buckets.states.clear();
            buckets.queue.clear();
        }
    }

    fn decide(&mut self, request: &dyn Arrival) -> ModelDecision {
        match self.buckets.iter_mut().all(|buckets| buckets.take(request)) {
            true => ModelDecision::Passes,
            false => ModelDecision::Refused,
        }
    }

    fn copy(&self) -> Box<dyn LimiterModel> {
        Box::new(self.clone())
    }
}
