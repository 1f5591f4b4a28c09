//! Fleets without faults under more load than their rule allows: the used share of the limit, and waits for Redis.

use diana_policy::time::{Micros, Now, SECOND};
use kit::server::Server;

use super::NATIVE;
use super::plan::{EPOCH, MILLISECOND, Plan, TIMEOUT};
use super::record::Entry;
use super::rule::{Cost, Rule, Scope};
use super::world::World;

const SECONDS: u64 = 3;

pub fn plan(scope: Scope, algo: &'static str, limit: u64, demand: u64) -> Plan {
    let (gateways, workers) = if scope == Scope::Global { (2, 2) } else { (1, 4) };
    let rule = Rule {
        name: "e0-r0".into(),
        scope,
        algo,
        unit: SECOND,
        limit,
        gold: None,
        of_all: true,
        cost: Cost::Plain(1),
        ban: None,
        is_doubled: false,
        midnight: 0,
        period: "day",
        has_month_in_data: false,
        is_filter: false,
    };
    Plan {
        seed: 1,
        gateways,
        workers,
        listeners: 1,
        entries: vec![vec![rule]],
        callers: 1,
        parts: 1,
        on_failure: "gateway",
        demand,
        skew: 0,
        ends: SECONDS * SECOND,
        latency: MILLISECOND,
        service: MILLISECOND,
        leaving: 0,
        interrupted: 0,
        faults: Vec::new(),
        scale: 1,
        wide: None,
    }
}

/// The requests of a world, in which every promise was kept.
pub fn play(plan: &Plan) -> Vec<Entry> {
    World::new(plan, NATIVE, &Server::start()).run().1
}

/// How many of these requests one counter would admit.
fn admitted_by_one_counter(rule: &Rule, entries: &[Entry]) -> usize {
    let counter = rule.counter();
    let mut state = vec![0; counter.properties().words];
    let mut new = state.clone();
    let admits = |entry: &&Entry| {
        let mono = if rule.scope == Scope::Global { EPOCH } else { entry.clocks.mono };
        let now = Now { mono: mono + entry.arrived, wall: EPOCH + entry.arrived };
        let is_admitted = counter.step(&state, now, 0, 1, &mut new).is_admitted();
        if is_admitted {
            state.copy_from_slice(&new);
        }
        is_admitted
    };
    entries.iter().filter(admits).count()
}

fn waited(entry: &Entry) -> Micros {
    entry.decided.map_or(0, |(at, _)| at - entry.arrived)
}

#[test]
fn flood_uses_the_whole_limit() {
    for scope in [Scope::Gateway, Scope::Global] {
        for algo in ["W", "SW", "TB"] {
            for (limit, demand) in [(300, 300), (300, 600), (300, 3_000), (1_500, 3_000)] {
                let plan = plan(scope, algo, limit, demand);
                let entries = play(&plan);
                let admitted = entries.iter().filter(|entry| entry.admitted().is_some()).count();
                let most = admitted_by_one_counter(&plan.entries[0][0], &entries);
                let case = format!("{scope:?} {algo} {limit} of {demand}: {admitted} of {most}");
                println!("{case}, {} requests", entries.len());
                assert!(admitted * 100 >= most * 97, "{case}");
                let longest = if scope == Scope::Global { TIMEOUT } else { 0 };
                assert!(entries.iter().all(|entry| waited(entry) <= longest), "{case}");
            }
        }
    }
}

#[test]
fn few_requests_of_a_busy_caller_wait_for_redis() {
    for algo in ["W", "SW", "TB"] {
        let mut entries = play(&plan(Scope::Global, algo, 100_000, 3_000));
        // Workers lease once they know how often the caller comes, and for one slice or window at a time.
        entries.retain(|entry| {
            let into = (EPOCH + entry.arrived) % (SECOND / 10);
            (SECOND..SECONDS * SECOND).contains(&entry.arrived) && into >= 5 * MILLISECOND
        });
        let waiting = entries.iter().filter(|entry| waited(entry) > 0).count();
        let case = format!("{algo}: {waiting} of {} wait", entries.len());
        println!("{case}");
        assert!(waiting * 100 <= entries.len(), "{case}");
    }
}
