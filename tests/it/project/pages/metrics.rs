//! The table of metrics.

use std::collections::BTreeSet;

use super::first_cells;
use diana_limiter::metrics::RuleCounts;
use diana_policy::{Metric, MetricKind};
use diana_redis::protocol::Failure;
use kit::fake::FakeMetrics;

const FAILURES: [Failure; 23] = [
    Failure::NoAuth,
    Failure::WrongPass,
    Failure::Open,
    Failure::NoDatabase,
    Failure::Login,
    Failure::NoPerm,
    Failure::Moved,
    Failure::CrossSlot,
    Failure::ClusterDown,
    Failure::TryAgain,
    Failure::NoHost,
    Failure::Upstream,
    Failure::ReadOnly,
    Failure::NoReplicas,
    Failure::OutOfMemory,
    Failure::NoScript,
    Failure::Loading,
    Failure::Busy,
    Failure::Other(String::new()),
    Failure::Garbage,
    Failure::Timeout,
    Failure::Unreachable,
    Failure::Reset,
];

/// Those of documents, in the form of Prometheus, such as `diana_rule_refused`.
fn every_metric() -> BTreeSet<String> {
    let of_documents = Metric::ALL.iter().filter(|metric| metric.labels()[0] == "namespace");
    of_documents.map(|metric| format!("diana_{}", metric.plain())).collect()
}

/// The PodMonitor of the chart makes the label `rule` from the names of these metrics.
#[test]
fn chart_knows_every_metric_of_rules() {
    let template = include_str!("../../../../charts/diana/templates/pod-monitor.yaml");
    let (_, list) = template.split_once("\n[").expect("the list");
    let list = list.split(']').next().unwrap_or_default();
    let known = list.split(',').map(|name| format!("diana_rule_{}", name.trim()));
    let of_rules = every_metric().into_iter().filter(|name| name.starts_with("diana_rule_"));
    assert_eq!(known.collect::<BTreeSet<_>>(), of_rules.collect());
}

#[test]
fn table_of_metrics_is_complete() {
    let mut metrics = every_metric();
    assert!(metrics.len() > 60, "{metrics:?}");
    for row in first_cells("| metric | counts |") {
        let first = row[0];
        assert!(metrics.remove(first), "nothing is called {first}, or it stands there twice");
        // The other names differ at the end.
        for end in &row[1..] {
            let mut cuts = first.match_indices('_').rev().map(|(at, _)| &first[..at]);
            let is_there = cuts.any(|begin| metrics.remove(&format!("{begin}{end}")));
            assert!(is_there, "nothing is called {end} like {first}");
        }
    }
    assert!(metrics.is_empty(), "not in the table of metrics: {metrics:?}");
}

/// The regular expressions of envoy/envoy.yaml take the values of the labels out of the name in the statistics of the wasm module,
/// and Prometheus has underscores in place of dots. The native module defines the other name.
#[test]
fn both_modules_have_the_same_names() {
    for metric in Metric::ALL {
        let (stat, is_of_rule) = match metric.labels() {
            ["namespace", "rule"] => (metric.stat(&["ns", "r"]), true),
            [_] => (metric.stat(&["ns"]), false),
            other => panic!("{metric:?} has the labels {other:?}"),
        };
        let rest = stat.strip_prefix("diana.ns.").unwrap();
        assert_eq!(is_of_rule, rest.starts_with("rule."), "{stat}");
        let rest = if is_of_rule { rest.replacen(".r.", ".", 1) } else { rest.into() };
        assert_eq!(rest.replace('.', "_"), metric.plain(), "{stat}");
    }
}

#[test]
fn each_failure_of_redis_has_a_metric() {
    let mut reasons: BTreeSet<&str> = FAILURES.iter().map(Failure::name).collect();
    reasons.insert("lost");
    let metrics: BTreeSet<Metric> = reasons.iter().map(|reason| Metric::failed(reason)).collect();
    assert_eq!(metrics.len(), reasons.len(), "{metrics:?}");
    let of_failures =
        Metric::ALL.iter().filter(|metric| metric.name().starts_with("fleet.failed."));
    assert_eq!(of_failures.copied().collect::<BTreeSet<_>>(), metrics);
}

#[test]
fn rules_sum_up_each_of_their_counters() {
    let (mut counts, added) = (RuleCounts::default(), FakeMetrics::default());
    Metric::ALL.iter().zip(1_i64..).for_each(|(metric, change)| counts.add(*metric, change));
    counts.flush("ns", "r", &added);
    let gauges = [Metric::InFlight, Metric::Keys, Metric::HotKeys];
    for (metric, change) in Metric::ALL.iter().zip(1..) {
        let is_sum = metric.kind() == MetricKind::Counter || gauges.contains(metric);
        let expected = if is_sum && metric.labels().len() == 2 { change } else { 0 };
        assert_eq!(added.of(&metric.stat(&["ns", "r"])), expected, "{metric:?}");
    }
    let again = FakeMetrics::default();
    counts.flush("ns", "r", &again);
    assert!(again.0.take().is_empty(), "{counts:?}");
}
