//! The highest number of requests of each caller per window.

use diana_policy::time::{DAY, Micros, SECOND};
use hashbrown::HashMap;

/// The lengths of windows. All except the first are units of rules.
pub const SPANS: [(&str, Micros); 5] = [
    ("tenth of a second", SECOND / 10),
    ("second", SECOND),
    ("minute", 60 * SECOND),
    ("hour", 3600 * SECOND),
    ("day", DAY),
];

/// The counts of a caller in windows of one length.
#[derive(Debug, Clone, Copy, Default)]
struct PeakWindows {
    /// The current window: the lowest bits of its number. Successive requests are never 2³² windows
    /// apart.
    number: u32,
    count: u32,
    most: u32,
}

/// The counts of all callers.
#[derive(Debug, Default)]
pub struct Peaks(HashMap<u64, [PeakWindows; SPANS.len()]>);

impl Peaks {
    /// Counts a request of a caller.
    pub fn add(&mut self, caller: u64, at: Micros) {
        let windows = self.0.entry(caller).or_default();
        for (window, (_, length)) in windows.iter_mut().zip(SPANS) {
            let number = (at / length) as u32;
            if window.number != number {
                (window.number, window.count) = (number, 0);
            }
            window.count = window.count.saturating_add(1);
            window.most = window.most.max(window.count);
        }
    }

    /// The number of callers.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The highest count of each caller in windows of `SPANS[span]`, in ascending order.
    pub fn most(&self, span: usize) -> Vec<u32> {
        let mut most: Vec<u32> =
            self.0.values().filter_map(|windows| windows.get(span)).map(|it| it.most).collect();
        most.sort_unstable();
        most
    }
}
