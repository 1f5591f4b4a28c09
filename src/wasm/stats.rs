//! Metrics of the host, defined once per VM: each definition would otherwise stay in its memory.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::abi::metrics;
use super::one_thread::OneThread;
use diana_core::key::KeyHasher;

const COUNTER: u32 = 0;
const GAUGE: u32 = 1;
const HISTOGRAM: u32 = 2;

/// Ids by the hashes of their names. They stay as long as the host's metrics do, also those of rules that went, so
/// the names themselves would take memory with every rule that comes.
static IDS: OneThread<RefCell<BTreeMap<u64, u32>>> = OneThread::new(RefCell::new(BTreeMap::new()));

/// Adds to a counter.
pub(super) fn count(name: &str, amount: u64) {
    if let (Some(id), Ok(amount)) = (id(COUNTER, name), i64::try_from(amount)) {
        metrics::increment(id, amount);
    }
}

/// What a counter of this gateway shows.
pub(super) fn counted(name: &str) -> u64 {
    id(COUNTER, name).and_then(metrics::value).unwrap_or(0)
}

/// Moves a gauge.
pub(super) fn gauge(name: &str, change: i64) {
    if let Some(id) = id(GAUGE, name) {
        metrics::increment(id, change);
    }
}

/// Sets a gauge.
pub(super) fn set(name: &str, value: u64) {
    if let Some(id) = id(GAUGE, name) {
        metrics::record(id, value);
    }
}

/// Adds a value to a histogram.
pub(super) fn record(name: &str, value: u64) {
    if let Some(id) = id(HISTOGRAM, name) {
        metrics::record(id, value);
    }
}

fn id(kind: u32, name: &str) -> Option<u32> {
    let mut hasher = KeyHasher::public();
    hasher.part(kind as usize, name.as_bytes());
    let hash = hasher.finish().hash;
    let mut ids = IDS.borrow_mut();
    if let Some(&id) = ids.get(&hash) {
        return Some(id);
    }
    let id = metrics::define(kind, name)?;
    ids.insert(hash, id);
    Some(id)
}
