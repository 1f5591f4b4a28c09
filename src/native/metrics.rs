//! Metrics. Workers add them up here, and Envoy's main thread hands them to Envoy: every worker could, but only during a
//! request, and not for rules without one. Envoy 1.38 needs a stream for it, so there they leave with requests.
//!
//! The core's names, `diana.<namespace>.rule.<rule>.<what>`, become `rule_<what>` with the labels `namespace` and `rule`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{ConfigCall, Labels, has_config_metrics};
use crate::configurations;
use crate::families::{FAMILIES, Family, MetricKind};

/// The metrics of one configuration.
///
/// Envoy drops a counter or gauge with the last configuration that has changed it, and the next one would begin at zero. So each
/// configuration changes each of them once.
struct MetricIds {
    /// The number of the configuration.
    root: u32,
    ids: BTreeMap<String, (MetricKind, usize)>,
    /// The number of counters and gauges that it has changed.
    changed: usize,
}

fn all_ids() -> MutexGuard<'static, Vec<MetricIds>> {
    static IDS: Mutex<Vec<MetricIds>> = Mutex::new(Vec::new());
    IDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Defines all metrics for a configuration, while it is created.
pub(crate) fn define(root: u32, call: &ConfigCall) {
    let each = |family: &'static Family| {
        let Family { kind, labels, prefix, names } = family;
        names.iter().filter_map(move |name| {
            let name = format!("{prefix}{name}");
            let id = call.define(*kind, &name, labels)?;
            Some((name, (*kind, id)))
        })
    };
    let ids = FAMILIES.iter().flat_map(each).collect();
    all_ids().push(MetricIds { root, ids, changed: 0 });
}

/// A configuration has ended.
pub(crate) fn end(root: u32) {
    all_ids().retain(|it| it.root != root);
    schedule_anew();
}

/// The values of metrics, by the core's names.
#[derive(Default)]
struct MetricValues {
    /// Counters, and what Envoy does not have of them.
    counters: BTreeMap<String, (u64, u64)>,
    /// Gauges, and whether Envoy has the value.
    gauges: BTreeMap<String, (i64, bool)>,
    /// MetricValues of histograms that Envoy does not have.
    records: Vec<(String, u64)>,
    /// The number of counters and gauges that some configuration has changed.
    changed: usize,
}

static VALUES: Mutex<MetricValues> = Mutex::new(MetricValues {
    counters: BTreeMap::new(),
    gauges: BTreeMap::new(),
    records: Vec::new(),
    changed: 0,
});

/// Whether Envoy lacks a value.
static IS_BEHIND: AtomicBool = AtomicBool::new(false);

fn values() -> MutexGuard<'static, MetricValues> {
    VALUES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds to a counter.
pub(crate) fn count(name: &str, amount: u64) {
    {
        let mut values = values();
        let (total, new) = entry(&mut values.counters, name);
        (*total, *new) = (total.wrapping_add(amount), new.wrapping_add(amount));
    }
    schedule();
}

/// Counts a panic in a hook.
pub(crate) fn count_fault(hook: &str) {
    count(&format!("diana.{hook}.faults"), 1);
}

/// The value of a counter of this process.
pub(crate) fn total(name: &str) -> u64 {
    values().counters.get(name).map_or(0, |(total, _)| *total)
}

/// Moves a gauge.
pub(crate) fn gauge(name: &str, change: i64) {
    {
        let mut values = values();
        let (value, is_known) = entry(&mut values.gauges, name);
        (*value, *is_known) = (value.saturating_add(change), false);
    }
    schedule();
}

/// Sets a gauge.
pub(crate) fn set(name: &str, value: u64) {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    {
        let mut values = values();
        let (before, is_known) = entry(&mut values.gauges, name);
        *is_known &= *before == value;
        *before = value;
    }
    schedule();
}

/// Adds a value to a histogram.
pub(crate) fn record(name: &str, value: u64) {
    /// Envoy takes them long before.
    const MOST: usize = 1 << 16;
    {
        let mut values = values();
        if values.records.len() < MOST {
            values.records.push((name.into(), value));
        }
    }
    schedule();
}

fn entry<'v, V: Default>(values: &'v mut BTreeMap<String, V>, name: &str) -> &'v mut V {
    match values.entry(name.into()) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(new) => new.insert(V::default()),
    }
}

/// Makes the main thread report the metrics, if Envoy can do so without a stream.
fn schedule() {
    if !IS_BEHIND.swap(true, Ordering::AcqRel) && has_config_metrics() {
        configurations::schedule_metrics();
    }
}

/// As [`schedule`], after the configurations have changed.
pub(crate) fn schedule_anew() {
    IS_BEHIND.store(true, Ordering::Release);
    if has_config_metrics() {
        configurations::schedule_metrics();
    }
}

/// Returns true if a stream must report the metrics.
#[inline]
pub(crate) fn need_a_stream() -> bool {
    IS_BEHIND.load(Ordering::Relaxed) && !has_config_metrics()
}

/// The main thread has failed to report. The next change makes it report all.
pub(crate) fn miss() {
    IS_BEHIND.store(false, Ordering::Release);
}

/// Reports what Envoy does not have, by a configuration. Returns true if none had changed some of these metrics before.
#[cold]
pub(crate) fn flush(
    root: u32,
    mut change: impl FnMut(MetricKind, usize, &Labels<'_>, u64),
) -> bool {
    let mut all = all_ids();
    let Some(metrics) = all.iter_mut().find(|it| it.root == root) else { return false };
    IS_BEHIND.store(false, Ordering::Release);
    let mut report = |name: &str, value: u64| {
        if let Some((name, labels)) = split(name)
            && let Some((kind, id)) = metrics.ids.get(&name)
        {
            change(*kind, *id, &labels, value);
        }
    };
    let mut values = values();
    let count = values.counters.len() + values.gauges.len();
    let lacks_some = metrics.changed < count;
    for (name, (_, new)) in
        values.counters.iter_mut().filter(|(_, (_, new))| lacks_some || *new > 0)
    {
        report(name, std::mem::take(new));
    }
    for (name, (value, is_known)) in
        values.gauges.iter_mut().filter(|(_, (_, known))| lacks_some || !known)
    {
        *is_known = true;
        report(name, u64::try_from(*value).unwrap_or(0));
    }
    for (name, value) in std::mem::take(&mut values.records) {
        report(&name, value);
    }
    metrics.changed = count;
    std::mem::replace(&mut values.changed, count) < count
}

/// The name of a metric for Envoy, and its labels.
fn split(name: &str) -> Option<(String, Vec<&str>)> {
    let (namespace, what) = name.strip_prefix("diana.")?.split_once('.')?;
    match what.strip_prefix("rule.").and_then(|what| what.split_once('.')) {
        Some((rule, what)) => {
            Some((format!("rule_{}", what.replace('.', "_")), vec![namespace, rule]))
        }
        None => Some((what.replace('.', "_"), vec![namespace])),
    }
}
