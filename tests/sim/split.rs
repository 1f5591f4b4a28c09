//! Two stores behind one address.

use diana_policy::time::SECOND;
use kit::server::Server;

use super::busy::plan;
use super::node::Metrics;
use super::plan::{Fault, Plan};
use super::rule::Scope;
use super::world::{Start, World};
use super::{NATIVE, SHIPPED};

/// How often each gateway has found the second store, within some seconds.
fn splits(start: Start, algo: &'static str, faults: Vec<Fault>) -> Vec<i64> {
    let mut plan = Plan { callers: 100, faults, ..plan(Scope::Global, algo, 100_000, 300) };
    plan.ends = 12 * SECOND;
    plan.entries[0][0].of_all = false;
    let count = |metrics: &Metrics| {
        let split = metrics.iter().find(|(name, _)| name.ends_with(".fleet.split"));
        split.map_or(0, |(_, count)| *count)
    };
    World::new(&plan, start, &Server::start()).run().2.iter().map(count).collect()
}

#[test]
fn each_gateway_finds_a_second_store() {
    for start in [NATIVE, SHIPPED] {
        for algo in ["W", "TB"] {
            let split = Fault::Split { span: 0..12 * SECOND };
            let splits = splits(start, algo, vec![split]);
            println!("{algo}: {splits:?}");
            assert!(splits.iter().all(|count| *count > 0), "{algo}: {splits:?}");
        }
    }
}

#[test]
fn failover_that_loses_writes_is_no_second_store() {
    for lag in [1, SECOND / 100, 2 * SECOND] {
        let failover = Fault::Failover { span: 3 * SECOND - lag..3 * SECOND };
        assert_eq!(splits(NATIVE, "W", vec![failover]), [0, 0]);
    }
}
