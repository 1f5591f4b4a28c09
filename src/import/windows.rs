//! Fixed windows in which refused requests count, as in the rate limit service of Envoy.

use diana_policy::port::{Request, Values};
use diana_policy::tree::Tree;
use diana_replay::Arrival;
use hashbrown::HashMap;

use crate::key::KeySource;
use crate::model::{LimiterModel, ModelDecision};

/// The limit of a window, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowSize {
    pub(crate) most: u64,
    /// The length in seconds, at least one.
    pub(crate) seconds: u64,
}

impl WindowSize {
    /// The keys of a rule for it, without the cost.
    pub(crate) fn rule_keys(self) -> Vec<(&'static str, Tree)> {
        let unit = match self.seconds {
            1 => "second".into(),
            60 => "minute".into(),
            3600 => "hour".into(),
            DAY => "day".into(),
            WEEK => "week".into(),
            seconds if seconds % DAY == 0 => format!("{}d", seconds / DAY),
            seconds => format!("{seconds}s"),
        };
        let keys = [
            ("unit", Tree::Text(unit)),
            ("rpu", Tree::Int(i128::from(self.most))),
            ("algo", "window".into()),
            ("scope", "global".into()),
        ];
        // Unix time began on a Thursday.
        let start = (self.seconds == WEEK).then(|| ("week_starts", "thursday".into()));
        keys.into_iter().chain(start).collect()
    }
}

/// A day and a week in seconds.
const DAY: u64 = 86_400;
const WEEK: u64 = 7 * DAY;

/// The seconds of a unit of the service, which counts windows of these days, not of the calendar.
///
/// # Errors
/// Why no rule has the unit.
pub(crate) fn seconds(unit: &str) -> Result<u64, String> {
    Ok(match unit.to_ascii_lowercase().as_str() {
        "second" => 1,
        "minute" => 60,
        "hour" => 3600,
        "day" => DAY,
        "week" => WEEK,
        "month" => 30 * DAY,
        "" => return Err("no rule has the unit that is missing".into()),
        _ => return Err(format!("no rule has the unit {unit}")),
    })
}

/// A count for each value of a key, in windows of Unix time.
#[derive(Debug, Clone)]
pub(crate) struct CountedWindows {
    size: WindowSize,
    /// The values that form the key. None is one count.
    sources: Vec<KeySource>,
    /// The number that a request adds.
    cost: u64,
    /// The header that a request must have, if it has any.
    pub(crate) part: Option<String>,
    counts: HashMap<Vec<u8>, (u64, u64)>,
}

impl CountedWindows {
    pub(crate) fn new(size: WindowSize, sources: Vec<KeySource>, cost: u64) -> CountedWindows {
        CountedWindows { size, sources, cost, part: None, counts: HashMap::new() }
    }

    /// Adds a request. Returns false if it exceeds the limit.
    fn add(&mut self, request: &dyn Arrival) -> bool {
        let values: Vec<Vec<u8>> =
            self.sources.iter().map(|source| source.value(request)).collect();
        let is_other = |part: &String| Request::header(request, part) == Values::None;
        if values.iter().any(Vec::is_empty) || self.part.as_ref().is_some_and(is_other) {
            return true;
        }
        let window = request.at() / 1_000_000 / self.size.seconds.max(1);
        let (last, count) = self.counts.entry(values.join(&0)).or_insert((window, 0));
        if *last != window {
            (*last, *count) = (window, 0);
        }
        *count = count.saturating_add(self.cost);
        *count <= self.size.most
    }
}

/// Windows that a request counts in, all of them, even if one refuses it.
#[derive(Debug, Default, Clone)]
pub(crate) struct WindowsModel {
    pub(crate) windows: Vec<CountedWindows>,
}

impl WindowsModel {
    /// The model of one count. None if it cannot be compared.
    pub(crate) fn of(windows: CountedWindows) -> Option<Box<dyn LimiterModel>> {
        let is_comparable = windows.sources.iter().all(KeySource::is_comparable);
        is_comparable
            .then(|| -> Box<dyn LimiterModel> { Box::new(WindowsModel { windows: vec![windows] }) })
    }
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

    fn copy(&self) -> Box<dyn LimiterModel> {
        Box::new(self.clone())
    }
}
