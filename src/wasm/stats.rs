//! Metrics of the host, defined once per VM: each definition would otherwise stay in its memory.

use std::cell::RefCell;

use super::abi;

const COUNTER: u32 = 0;
const GAUGE: u32 = 1;
const HISTOGRAM: u32 = 2;

thread_local! {
    /// Names and ids, sorted by name.
    static IDS: RefCell<Vec<(String, u32)>> = const { RefCell::new(Vec::new()) };
}

/// Adds to a counter.
pub(super) fn count(name: &str, amount: u64) {
    if let (Some(id), Ok(amount)) = (id(COUNTER, name), i64::try_from(amount)) {
        abi::increment_metric(id, amount);
    }
}

/// What a counter of this gateway shows.
pub(super) fn counted(name: &str) -> u64 {
    id(COUNTER, name).and_then(abi::metric).unwrap_or(0)
}

/// Moves a gauge.
pub(super) fn gauge(name: &str, change: i64) {
    if let Some(id) = id(GAUGE, name) {
        abi::increment_metric(id, change);
    }
}

/// Sets a gauge.
pub(super) fn set(name: &str, value: u64) {
    if let Some(id) = id(GAUGE, name) {
        abi::record_metric(id, value);
    }
}

/// Adds a value to a histogram.
pub(super) fn record(name: &str, value: u64) {
    if let Some(id) = id(HISTOGRAM, name) {
        abi::record_metric(id, value);
    }
}

fn id(kind: u32, name: &str) -> Option<u32> {
    IDS.with_borrow_mut(|ids| match ids.binary_search_by(|(known, _)| known.as_str().cmp(name)) {
        Ok(place) => ids.get(place).map(|(_, id)| *id),
        Err(place) => {
            let id = abi::define_metric(kind, name)?;
            ids.insert(place, (name.into(), id));
            Some(id)
        }
    })
}
