//! Ids of metrics. Each is defined once per VM, since the host never frees a definition.

use std::cell::RefCell;
use std::collections::BTreeMap;

use diana_policy::key::KeyHasher;
use diana_policy::{Metric, MetricKind};
use proxy_wasm::hostcalls;
use proxy_wasm::types::MetricType;

thread_local! {
    /// Ids by the metrics and the hashes of their labels. The host keeps metrics of removed rules, and so
    /// does this map. Storing the labels would take more memory with every new rule.
    static IDS: RefCell<BTreeMap<(Metric, u64), u32>> = const { RefCell::new(BTreeMap::new()) };
}

/// The host's id of a metric with these labels.
pub(super) fn id(metric: Metric, labels: &[&str]) -> Option<u32> {
    let mut hasher = KeyHasher::public();
    labels.iter().enumerate().for_each(|(at, label)| hasher.part(at, label.as_bytes()));
    let key = (metric, hasher.finish().hash);
    IDS.with_borrow_mut(|ids| {
        if let Some(&id) = ids.get(&key) {
            return Some(id);
        }
        let kind = match metric.kind() {
            MetricKind::Counter => MetricType::Counter,
            MetricKind::Gauge => MetricType::Gauge,
            MetricKind::Histogram => MetricType::Histogram,
        };
        let id = hostcalls::define_metric(kind, &metric.stat(labels)).ok()?;
        ids.insert(key, id);
        Some(id)
    })
}
