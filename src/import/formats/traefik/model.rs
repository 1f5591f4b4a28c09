//! Traefik's middlewares as they count, but for the time that a request waits in an earlier one.

use diana_replay::Arrival;
use hashbrown::HashMap;

use crate::buckets::BucketSize;
use crate::key::KeySource;
use crate::model::{LimiterModel, ModelDecision};
use crate::open_requests::OpenRequests;

/// The middlewares of a router, in their order.
#[derive(Debug, Default, Clone)]
pub(super) struct RouterModel {
    pub(super) limits: Vec<MiddlewareModel>,
}

/// A middleware.
#[derive(Debug, Clone)]
pub(super) enum MiddlewareModel {
    Rate(WaitingBuckets),
    InFlight(KeySource, OpenRequests),
}

/// A bucket for each key. A request waits a little for a token.
#[derive(Debug, Clone)]
pub(super) struct WaitingBuckets {
    pub(super) size: BucketSize,
    pub(super) source: KeySource,
    /// The longest wait in nanoseconds.
    pub(super) longest: u64,
    /// Whole seconds after the latest request of a key in which it is forgotten. None is never.
    pub(super) forgets: Option<u64>,
    states: HashMap<Vec<u8>, WaitingState>,
}

#[derive(Debug, Clone, Copy)]
struct WaitingState {
    /// Tokens, each in as many parts as the interval has microseconds.
    parts: i128,
    last: u64,
    used: u64,
}

impl WaitingBuckets {
    pub(super) fn new(
        size: BucketSize,
        source: KeySource,
        longest: u64,
        forgets: Option<u64>,
    ) -> WaitingBuckets {
        WaitingBuckets { size, source, longest, forgets, states: HashMap::new() }
    }

    /// The wait of a request in nanoseconds. None if it is refused, which costs nothing.
    fn take(&mut self, request: &dyn Arrival) -> Option<u64> {
        let now = request.at();
        let (second, interval) = (now / 1_000_000, i128::from(self.size.interval.max(1)) * 1000);
        let (full, fill) =
            (i128::from(self.size.most) * interval, i128::from(self.size.fill.max(1)));
        let new = WaitingState { parts: full, last: now, used: second };
        let state = self.states.entry(self.source.value(request)).or_insert(new);
        if self.forgets.is_some_and(|seconds| second >= state.used + seconds) {
            *state = new;
        }
        let refilled = state.parts + i128::from(now.saturating_sub(state.last)) * fill;
        let left = refilled.min(full) - interval;
        let wait = if left < 0 { (-left * 1000).div_euclid(fill) } else { 0 };
        let passes = wait <= i128::from(self.longest);
        let parts = if passes { left } else { left + interval };
        *state = WaitingState { parts, last: now, used: second };
        passes.then(|| u64::try_from(wait).unwrap_or(u64::MAX))
    }
}

impl LimiterModel for RouterModel {
    fn reset(&mut self) {
        for limit in &mut self.limits {
            match limit {
                MiddlewareModel::Rate(buckets) => buckets.states.clear(),
                MiddlewareModel::InFlight(_, open) => open.clear(),
            }
        }
    }

    fn decide(&mut self, request: &dyn Arrival) -> ModelDecision {
        let (mut wait, mut entered) = (0, Vec::new());
        for limit in &mut self.limits {
            match limit {
                MiddlewareModel::Rate(buckets) => match buckets.take(request) {
                    Some(own) => wait += own,
                    None => return ModelDecision::Refused,
                },
                MiddlewareModel::InFlight(source, open) => {
                    let key = source.value(request);
                    if !open.has_room(&key, request.at()) {
                        return ModelDecision::Refused;
                    }
                    entered.push((open, key));
                }
            }
        }
        let end = request.at() + wait / 1000 + request.took();
        entered.into_iter().for_each(|(open, key)| open.enter(key, end));
        match wait / 1_000_000 {
            0 => ModelDecision::Passes,
            ms => ModelDecision::Waits(ms),
        }
    }

    fn copy(&self) -> Box<dyn LimiterModel> {
        Box::new(self.clone())
    }
}
