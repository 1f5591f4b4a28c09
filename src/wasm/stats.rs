//! Metrics of the host. Each is defined once per VM, since the host never frees a definition.

use std::cell::RefCell;
use std::collections::BTreeMap;

use diana_policy::key::KeyHasher;
use proxy_wasm::hostcalls;
use proxy_wasm::types::MetricType;

thread_local! {
    /// Ids by the hashes of the metrics' names. The host keeps metrics of removed rules, and so
    /// does this map. Storing the names would take more memory with every new rule.
    static IDS: RefCell<BTreeMap<u64, u32>> = const { RefCell::new(BTreeMap::new()) };
}

/// Adds to a counter.
pub(super) fn count(name: &str, amount: u64) {
    if let (Some(id), Ok(amount)) = (id(MetricType::Counter, name), i64::try_from(amount)) {
        _ = hostcalls::increment_metric(id, amount);
    }
}

/// The value of a counter of this gateway.
pub(super) fn counter(name: &str) -> u64 {
    id(MetricType::Counter, name).and_then(|id| hostcalls::get_metric(id).ok()).unwrap_or(0)
}

/// Moves a gauge.
pub(super) fn gauge(name: &str, change: i64) {
    if let Some(id) = id(MetricType::Gauge, name) {
        _ = hostcalls::increment_metric(id, change);
    }
}

/// Sets a gauge.
pub(super) fn set(name: &str, value: u64) {
    if let Some(id) = id(MetricType::Gauge, name) {
        _ = hostcalls::record_metric(id, value);
    }
}

/// Adds a value to a histogram.
pub(super) fn record(name: &str, value: u64) {
    if let Some(id) = id(MetricType::Histogram, name) {
        _ = hostcalls::record_metric(id, value);
    }
}

fn id(kind: MetricType, name: &str) -> Option<u32> {
    let mut hasher = KeyHasher::public();
    hasher.part(kind as usize, name.as_bytes());
    let hash = hasher.finish().hash;
    IDS.with_borrow_mut(|ids| {
        if let Some(&id) = ids.get(&hash) {
            return Some(id);
        }
        let id = hostcalls::define_metric(kind, name).ok()?;
        ids.insert(hash, id);
        Some(id)
    })
}
