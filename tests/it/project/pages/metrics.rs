//! The table of metrics.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use super::first_cells;
use crate::support::redis::decides;
use crate::worker::{MILLISECOND, Thread};
use diana_limiter::metrics::{
    RequestCounts, RuleCounts, flush_fleet, flush_hot_keys, flush_keys, flush_mode, flush_traffic,
    report_limit,
};
use diana_policy::Scope;
use diana_policy::port::Metrics;
use diana_policy::time::{Now, SECOND};
use diana_redis::protocol::Failure;
use diana_request::settling::UnknownUsage;
use diana_store::backend::BackendCounts;
use diana_store::slots::Traffic;
use kit::fake::FakeEnvironment;
use kit::host::FakeHost;

/// The names that the native module defines in Envoy.
#[path = "../../../../src/native/families.rs"]
mod families;

/// Records the names of metrics.
#[derive(Default)]
struct Names(RefCell<BTreeSet<String>>);

impl Metrics for Names {
    fn count(&self, name: &str, _: u64) {
        self.0.borrow_mut().insert(name.to_owned());
    }

    fn gauge(&self, name: &str, _: i64) {
        self.count(name, 1);
    }

    fn set(&self, name: &str, _: u64) {
        self.count(name, 1);
    }

    fn record(&self, name: &str, _: u64) {
        self.count(name, 1);
    }
}

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

/// The metrics of rules and of Redis.
fn of_the_core(names: &Names) {
    // A new field must be added here.
    let mut counts = RuleCounts {
        allowed: 1,
        refused: 1,
        shadow_refused: 1,
        over: 1,
        banned: 1,
        unavailable: 1,
        degraded: 1,
        bans: 1,
        shadow_banned: 1,
        shadow_bans: 1,
        held: 1,
        absent: 1,
        not_asked: 1,
        refused_by_others: 1,
        shadow_held: 1,
        near: 1,
        leased: 1,
        hot: 1,
        limit_missing: 1,
        overflow: 1,
        settled: 1,
        refunded: 1,
        debt: 1,
        unsettled: 1,
        unknown: [0; 6],
        in_flight: 1,
    };
    let reasons = [
        UnknownUsage::ClientLeft,
        UnknownUsage::Cut,
        UnknownUsage::Unanswered,
        UnknownUsage::Error,
        UnknownUsage::Absent,
        UnknownUsage::Unusable,
    ];
    reasons.into_iter().for_each(|reason| counts.settle(1, 2, Some(reason)));
    counts.flush("ns", "r", names);
    for scope in [Scope::Local, Scope::Gateway, Scope::Global] {
        report_limit("ns", "r", scope, [1, 1, 1], names);
    }
    flush_keys("ns", "r", 1, names);
    flush_hot_keys("ns", "r", 1, names);
    RequestCounts { exempt: 1, without_address: 1, without_metadata: 1 }.flush("ns", names);
    let one = || Cell::new(1);
    let traffic = Traffic {
        writes: one(),
        conflicts: one(),
        exhausted: one(),
        corrupt: one(),
        emptied: one(),
    };
    flush_traffic("ns", &traffic, names);
    ["fleet", "gateway"].into_iter().for_each(|mode| flush_mode("ns", mode, 1, names));
    let mut failures: Vec<(&str, u64)> = FAILURES.iter().map(|it| (it.name(), 1)).collect();
    failures.push(("lost", 1));
    let stats = BackendCounts {
        calls: 1,
        asks: 1,
        corrupt: 1,
        apart: 1,
        split: 1,
        unsettled: 1,
        changes: 1,
        failures,
    };
    flush_fleet("ns", &stats, names);
}

/// The metrics of a worker, after each counted event.
fn of_a_worker(names: &Names) {
    const OWN: &str = "limits: [{Url: /, rules: [{name: r, actor: account, unit: day, rpu: 9, algo: W, scope: local}]}]\n\
                       remote: {cluster: centre, path: /rules, every: 1s}";
    let mut thread = Thread::with(OWN);
    assert!(!thread.configure(1, "limits: 7"));
    for (status, document) in [(200, OWN.lines().next().unwrap()), (200, "limits: 7"), (503, "")] {
        thread.pass(2 * SECOND);
        let call = thread.host.calls.borrow().len() - 1;
        thread.answer(1, call as u32, Some(status), document.as_bytes());
    }
    thread.pass(2 * SECOND);
    thread.request(1, 10, "ann");
    thread.pass(2 * SECOND);
    let now = thread.host.now.get();
    thread.host.now.set(Now { mono: now.mono + SECOND, wall: now.wall - 60 * SECOND });
    thread.request(1, 11, "ann");
    names.0.borrow_mut().extend(thread.host.counts.take().into_keys());
    let environment = [("DIANA_WITHOUT_DOCUMENT".into(), "admit".into())].into();
    let environment = FakeEnvironment(environment);
    let mut thread = Thread::of(FakeHost { environment, ..FakeHost::default() });
    assert!(thread.configure(1, "limits: 7"));
    names.0.borrow_mut().extend(thread.host.counts.take().into_keys());
    let mut thread = Thread::with(
        "redis: {cluster: redis}\nlimits: [{Url: /, rules: [{name: r, actor: account, unit: day, rpu: 5, scope: global}]}]",
    );
    thread.request(1, 10, "ann");
    thread.pass(2 * MILLISECOND);
    thread.answer(1, 0, Some(200), &decides(&[0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0]));
    names.0.borrow_mut().extend(thread.host.counts.take().into_keys());
}

/// All names in the form of Prometheus, such as `diana_rule_refused`.
fn every_metric() -> BTreeSet<String> {
    let names = Names::default();
    of_the_core(&names);
    of_a_worker(&names);
    let plain =
        |name: &String| name.replacen(".ns", "", 1).replacen(".r.", ".", 1).replace('.', "_");
    names.0.borrow().iter().map(plain).collect()
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

/// Envoy takes no metric that a configuration has not defined when it was created.
#[test]
fn native_module_defines_each_metric() {
    let families = families::FAMILIES.iter().filter(|family| family.labels[0] == "namespace");
    let names = families.flat_map(|family| {
        let rule_and_namespace = family.labels.len() == 2;
        assert_eq!(rule_and_namespace, family.prefix == "rule_", "{:?}", family.kind);
        family.names.iter().map(|name| format!("diana_{}{name}", family.prefix))
    });
    assert_eq!(names.collect::<BTreeSet<_>>(), every_metric());
}
