//! Metrics. Workers add them up here, and Envoy's main thread hands them to Envoy: every worker could, but only during a
//! request, and not for rules without one. Envoy 1.38 needs a stream for it, so there they leave with requests.
//!
//! The core's names, `diana.<namespace>.rule.<rule>.<what>`, become `rule_<what>` with the labels `namespace` and `rule`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{ConfigCall, has_config_metrics};
use crate::config;

/// The values of a metric's labels.
pub(crate) type Labels<'l> = [&'l str];

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

const NAMESPACE: &[&str] = &["namespace"];
const RULE: &[&str] = &["namespace", "rule"];

/// Metrics of a kind, with these labels. Envoy wants to know all of them when a configuration is created.
struct Family {
    kind: MetricKind,
    labels: &'static [&'static str],
    /// Before each name.
    prefix: &'static str,
    names: &'static [&'static str],
}

const FAMILIES: &[Family] = &[
    Family {
        kind: MetricKind::Counter,
        labels: RULE,
        prefix: "rule_",
        names: &[
            "allowed",
            "refused",
            "shadow_refused",
            "not_asked",
            "over",
            "refused_by_others",
            "absent",
            "banned",
            "unavailable",
            "degraded",
            "bans",
            "shadow_banned",
            "shadow_bans",
            "held",
            "shadow_held",
            "near",
            "lent",
            "hot",
            "limit_missing",
            "overflow",
            "settled",
            "refunded",
            "debt",
            "unsettled",
            "untold_client_left",
            "untold_cut",
            "untold_unanswered",
            "untold_error",
            "untold_absent",
            "untold_unusable",
        ],
    },
    Family {
        kind: MetricKind::Gauge,
        labels: RULE,
        prefix: "rule_",
        names: &[
            "in_flight",
            "keys",
            "hot_keys",
            "limit_local",
            "limit_gateway",
            "limit_global",
            "window_us",
            "keys_limit",
        ],
    },
    Family {
        kind: MetricKind::Counter,
        labels: NAMESPACE,
        prefix: "",
        names: &[
            "requests",
            "exempt",
            "address_missing",
            "metadata_missing",
            "shared_writes",
            "shared_conflicts",
            "shared_exhausted",
            "shared_foreign",
            "config_accepted",
            "config_rejected",
            "clock_stepped_back",
            "remote_fetched",
            "remote_failed",
            "remote_rejected",
            "remote_applied",
            "mode_changes",
            "fleet_trips",
            "fleet_asks",
            "fleet_foreign",
            "fleet_apart",
            "fleet_unsettled",
        ],
    },
    Family {
        kind: MetricKind::Counter,
        labels: NAMESPACE,
        prefix: "fleet_failed_",
        names: &[
            "noauth",
            "wrongpass",
            "noperm",
            "moved",
            "crossslot",
            "clusterdown",
            "tryagain",
            "readonly",
            "noreplicas",
            "oom",
            "noscript",
            "loading",
            "busy",
            "nohost",
            "upstream",
            "garbage",
            "timeout",
            "unreachable",
            "reset",
            "other",
        ],
    },
    Family {
        kind: MetricKind::Gauge,
        labels: NAMESPACE,
        prefix: "",
        names: &[
            "document",
            "disabled",
            "without_document",
            "remote_in_force",
            "mode_fleet",
            "mode_gateway",
        ],
    },
    Family {
        kind: MetricKind::Histogram,
        labels: NAMESPACE,
        prefix: "",
        names: &["fleet_wait_us"],
    },
    Family { kind: MetricKind::Counter, labels: &["hook"], prefix: "", names: &["faults"] },
];

/// The ids of all metrics in one configuration.
pub(crate) struct MetricIds(BTreeMap<String, (MetricKind, usize)>);

impl MetricIds {
    pub(crate) fn define(call: &ConfigCall) -> MetricIds {
        let each = |family: &'static Family| {
            let Family { kind, labels, prefix, names } = family;
            names.iter().filter_map(move |name| {
                let name = format!("{prefix}{name}");
                let id = call.define(*kind, &name, labels)?;
                Some((name, (*kind, id)))
            })
        };
        MetricIds(FAMILIES.iter().flat_map(each).collect())
    }
}

/// The values of metrics, by the core's names.
#[derive(Default)]
struct Values {
    /// Counters, and what Envoy does not have of them.
    counters: BTreeMap<String, (u64, u64)>,
    /// Gauges, and whether Envoy has the value.
    gauges: BTreeMap<String, (i64, bool)>,
    /// Values of histograms that Envoy does not have.
    records: Vec<(String, u64)>,
}

static VALUES: Mutex<Values> =
    Mutex::new(Values { counters: BTreeMap::new(), gauges: BTreeMap::new(), records: Vec::new() });

/// Whether Envoy lacks a value.
static IS_BEHIND: AtomicBool = AtomicBool::new(false);

fn values() -> MutexGuard<'static, Values> {
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
        config::schedule_metrics();
    }
}

/// As [`schedule`], after the configuration that was to report has changed.
pub(crate) fn schedule_anew() {
    if IS_BEHIND.load(Ordering::Acquire) && has_config_metrics() {
        config::schedule_metrics();
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

/// Reports what Envoy does not have.
pub(crate) fn flush(ids: &MetricIds, mut change: impl FnMut(MetricKind, usize, &Labels<'_>, u64)) {
    IS_BEHIND.store(false, Ordering::Release);
    let mut report = |name: &str, value: u64| {
        if let Some((name, labels)) = split(name)
            && let Some((kind, id)) = ids.0.get(&name)
        {
            change(*kind, *id, &labels, value);
        }
    };
    let mut values = values();
    for (name, (_, new)) in values.counters.iter_mut().filter(|(_, (_, new))| *new > 0) {
        report(name, std::mem::take(new));
    }
    for (name, (value, is_known)) in values.gauges.iter_mut().filter(|(_, (_, known))| !known) {
        *is_known = true;
        report(name, u64::try_from(*value).unwrap_or(0));
    }
    for (name, value) in std::mem::take(&mut values.records) {
        report(&name, value);
    }
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
