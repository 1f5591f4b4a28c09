//! Fixed windows in which refused requests count, as in the rate limit service of Envoy.

use diana_policy::port::{Request, Values};
use diana_replay::Arrival;
use hashbrown::HashMap;

use crate::key::KeySource;
use crate::model::{LimiterModel, ModelDecision};

/// A count for each value of a key, in windows of Unix time.
#[derive(Debug, Clone)]
pub(crate) struct CountedWindows {
    pub(crate) most: u64,
    /// The length of a window in seconds.
    pub(crate) seconds: u64,
    /// The values that form the key. None is one count.
    pub(crate) sources: Vec<KeySource>,
    /// The number that a request adds.
    pub(crate) cost: u64,
    /// The header that a request must have, if it has any.
    pub(crate) part: Option<String>,
    counts: HashMap<Vec<u8>, (u64, u64)>,
}

impl CountedWindows {
    pub(crate) fn new(
        most: u64,
        seconds: u64,
        sources: Vec<KeySource>,
        cost: u64,
    ) -> CountedWindows {
        CountedWindows { most, seconds, sources, cost, part: None, counts: HashMap::new() }
    }

    /// Adds a request. Returns false if it exceeds the limit.
    fn add(&mut self, request: &dyn Arrival) -> bool {
        let values: Vec<Vec<u8>> =
            self.sources.iter().map(|source| source.value(request)).collect();
        let is_other = |part: &String| Request::header(request, part) == Values::None;
        if values.iter().any(Vec::is_empty) || self.part.as_ref().is_some_and(is_other) {
            return true;
        }
        let window = request.at() / 1_000_000 / self.seconds.max(1);
        let (last, count) = self.counts.entry(values.join(&0)).or_insert((window, 0));
        if *last != window {
            (*last, *count) = (window, 0);
        }
        *count = count.saturating_add(self.cost);
        *count <= self.most
    }
}

/// Windows that a request counts in, all of them, even if one refuses it.
#[derive(Debug, Default, Clone)]
pub(crate) struct WindowsModel {
    pub(crate) windows: Vec<CountedWindows>,
}

impl LimiterModel for WindowsModel {
    fn reset(&mut self) {
        self.windows.iter_mut().for_each(|windows| windows.counts.clear());
    }

    fn decide(&mut self, request: &dyn Arrival) -> ModelDecision {
        let mut passes = true;
        for windows in &mut self.windows {
            passes &= windows.add(request);
        }
        if passes { ModelDecision::Passes } else { ModelDecision::Refused }
    }
}
