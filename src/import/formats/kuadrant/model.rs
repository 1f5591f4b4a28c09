//! Limitador: fixed windows that begin with the first request of a caller. A request counts in all of
//! its windows, or in none if one refuses it.

use diana_replay::Arrival;
use hashbrown::HashMap;

use crate::key::KeySource;
use crate::model::{LimiterModel, ModelDecision};
use crate::windows::WindowSize;

/// A count for each value of a key.
#[derive(Debug, Clone)]
pub(super) struct FirstRequestWindows {
    size: WindowSize,
    sources: Vec<KeySource>,
    /// The end of a window in microseconds, and the count.
    counts: HashMap<Vec<u8>, (u64, u64)>,
}

impl FirstRequestWindows {
    pub(super) fn new(size: WindowSize, sources: Vec<KeySource>) -> FirstRequestWindows {
        FirstRequestWindows { size, sources, counts: HashMap::new() }
    }
}

/// The windows that a request counts in together.
#[derive(Debug, Clone)]
pub(super) struct LimitadorModel {
    pub(super) windows: Vec<FirstRequestWindows>,
}

impl LimiterModel for LimitadorModel {
    fn reset(&mut self) {
        self.windows.iter_mut().for_each(|windows| windows.counts.clear());
    }

    fn decide(&mut self, request: &dyn Arrival) -> ModelDecision {
        let now = request.at();
        let mut counted = Vec::new();
        for FirstRequestWindows { size, sources, counts } in &mut self.windows {
            let values: Vec<Vec<u8>> = sources.iter().map(|source| source.value(request)).collect();
            if values.iter().any(Vec::is_empty) {
                continue;
            }
            let begun = (now.saturating_add(size.seconds.saturating_mul(1_000_000)), 0);
            let window = counts.entry(values.join(&0)).or_insert(begun);
            if window.0 <= now {
                *window = begun;
            }
            if window.1 >= size.most {
                return ModelDecision::Refused;
            }
            counted.push(window);
        }
        counted.into_iter().for_each(|(_, count)| *count += 1);
        ModelDecision::Passes
    }

    fn copy(&self) -> Box<dyn LimiterModel> {
        Box::new(self.clone())
    }
}
