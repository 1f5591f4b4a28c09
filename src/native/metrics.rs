//! Metrics. Workers add them up here, and Envoy's main thread hands them to Envoy: every worker could, but only during a
//! request, and not for rules without one. Envoy 1.38 needs a stream for it, so there they leave with requests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use diana_policy::{Metric, MetricKind, names};

use crate::abi::{ConfigCall, has_config_metrics};
use crate::configurations::Configurations;

/// The metrics of one configuration.
///
/// Envoy drops a counter or gauge with the last configuration that has changed it, and the next one would begin at zero. So each
/// configuration changes each of them once.
struct MetricIds {
    /// The number of the configuration.
    root: u32,
    /// Envoy's numbers of [`Metric::ALL`].
    ids: Vec<Option<usize>>,
    /// The number of counters and gauges that it has changed.
    changed: usize,
}

/// A metric and the values of its labels.
type LabelledMetric = (Metric, Vec<String>);

/// A counter or gauge.
#[derive(Default)]
struct MetricValue {
    now: i64,
    /// What Envoy does not have of it.
    news: i64,
}

#[derive(Default)]
struct MetricValues {
    configurations: Vec<MetricIds>,
    values: BTreeMap<LabelledMetric, MetricValue>,
    /// Values of histograms that Envoy does not have.
    records: Vec<(LabelledMetric, Vec<u64>)>,
    /// The number of counters and gauges that some configuration has changed.
    changed: usize,
}

/// The metrics of this process.
#[derive(Default)]
pub(crate) struct ProcessMetrics {
    values: Mutex<MetricValues>,
    /// Whether Envoy lacks a value.
    is_behind: AtomicBool,
}

fn series(metric: Metric, labels: &[&str]) -> LabelledMetric {
    (metric, labels.iter().map(|label| names::in_metrics(label).into()).collect())
}

impl ProcessMetrics {
    fn values(&self) -> MutexGuard<'_, MetricValues> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Defines all metrics for a configuration, while it is created.
    pub(crate) fn define(&self, root: u32, call: &ConfigCall) {
        let ids = Metric::ALL.iter().map(|metric| call.define(*metric)).collect();
        self.values().configurations.push(MetricIds { root, ids, changed: 0 });
    }

    /// A configuration has ended.
    pub(crate) fn end(&self, root: u32, configurations: &Configurations) {
        self.values().configurations.retain(|it| it.root != root);
        self.schedule_anew(configurations);
    }

    /// Adds to a counter, or moves a gauge.
    pub(crate) fn add(
        &self,
        metric: Metric,
        labels: &[&str],
        change: i64,
        configurations: &Configurations,
    ) {
        self.update(metric, labels, |_| change, configurations);
    }

    /// Sets a gauge.
    pub(crate) fn set(
        &self,
        metric: Metric,
        labels: &[&str],
        value: u64,
        configurations: &Configurations,
    ) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.update(metric, labels, |now| value.wrapping_sub(now), configurations);
    }

    fn update(
        &self,
        metric: Metric,
        labels: &[&str],
        change: impl FnOnce(i64) -> i64,
        configurations: &Configurations,
    ) {
        {
            let mut values = self.values();
            let value = values.values.entry(series(metric, labels)).or_default();
            let change = change(value.now);
            value.now = value.now.wrapping_add(change);
            value.news = value.news.wrapping_add(change);
        }
        self.schedule(configurations);
    }

    /// Counts a panic in a hook.
    pub(crate) fn count_fault(&self, hook: &str, configurations: &Configurations) {
        self.add(Metric::Faults, &[hook], 1, configurations);
    }

    /// The value of a counter of this process.
    pub(crate) fn total(&self, metric: Metric, labels: &[&str]) -> u64 {
        self.values()
            .values
            .get(&series(metric, labels))
            .map_or(0, |value| value.now.cast_unsigned())
    }

    /// Adds values to a histogram.
    pub(crate) fn record(
        &self,
        metric: Metric,
        labels: &[&str],
        new: &[u64],
        configurations: &Configurations,
    ) {
        /// Envoy takes them long before.
        const MOST: usize = 1 << 10;
        {
            let mut values = self.values();
            if values.records.len() < MOST {
                values.records.push((series(metric, labels), new.into()));
            }
        }
        self.schedule(configurations);
    }

    /// Makes the main thread report the metrics, if Envoy can do so without a stream.
    fn schedule(&self, configurations: &Configurations) {
        if !self.is_behind.swap(true, Ordering::AcqRel) && has_config_metrics() {
            configurations.schedule_metrics();
        }
    }

    /// As [`Self::schedule`], after the configurations have changed.
    pub(crate) fn schedule_anew(&self, configurations: &Configurations) {
        self.is_behind.store(true, Ordering::Release);
        if has_config_metrics() {
            configurations.schedule_metrics();
        }
    }

    /// Returns true if a stream must report the metrics.
    #[inline]
    pub(crate) fn need_a_stream(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed) && !has_config_metrics()
    }

    /// The main thread has failed to report. The next change makes it report all.
    pub(crate) fn miss(&self) {
        self.is_behind.store(false, Ordering::Release);
    }

    /// Reports what Envoy does not have, by a configuration. Returns true if none had changed some of these metrics before.
    #[cold]
    pub(crate) fn flush(
        &self,
        root: u32,
        mut change: impl FnMut(MetricKind, usize, &[String], u64),
    ) -> bool {
        let mut all = self.values();
        let MetricValues { configurations, values, records, changed } = &mut *all;
        let Some(own) = configurations.iter_mut().find(|it| it.root == root) else { return false };
        self.is_behind.store(false, Ordering::Release);
        let mut report = |(metric, labels): &LabelledMetric, value: u64| {
            if let Some(id) = own.ids.get(*metric as usize).copied().flatten() {
                change(metric.kind(), id, labels, value);
            }
        };
        let count = values.len();
        let lacks_some = own.changed < count;
        for (series, value) in values.iter_mut().filter(|(_, value)| lacks_some || value.news != 0)
        {
            let news = std::mem::take(&mut value.news);
            let is_counter = series.0.kind() == MetricKind::Counter;
            report(series, u64::try_from(if is_counter { news } else { value.now }).unwrap_or(0));
        }
        for (series, values) in std::mem::take(records) {
            values.iter().for_each(|value| report(&series, *value));
        }
        own.changed = count;
        std::mem::replace(changed, count) < count
    }
}
