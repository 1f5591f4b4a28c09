//! The effect of a proxy that spreads the keys over several Redis: up to a million questions per
//! second.

use crate::simulation::plan::{Line, Plan, Proxied};
use crate::table::{self, Column, thousands};
use diana_policy::time::SECOND;

const DEMAND: Column = ("requests/s", |plan, _| thousands(plan.demand));
const PARTS: Column = ("parts", |plan, _| proxied(plan).parts.to_string());
const NODES: Column = ("primaries", |plan, _| proxied(plan).nodes.to_string());
const CONNECTIONS: Column = ("connections each", |plan, _| {
    // Every worker of Envoy keeps one connection to every primary.
    thousands((plan.gateways * plan.workers) as u64)
});
const SCRIPTS: Column = ("script calls/s", |_, seen| thousands(seen.scripts as u64));
const BUSIEST: Column = ("busiest", |_, seen| format!("{:.0} %", 100.0 * seen.busiest));
const WAITS: Column = ("p50, p99, most of waits", |_, seen| {
    let [half, most, all] = seen.waits.map(|wait| wait as f64 / 1000.0);
    format!("{half:.1}, {most:.1}, {all:.1} ms")
});

const COLUMNS: &[Column] = &[
    table::GATEWAYS,
    DEMAND,
    PARTS,
    NODES,
    CONNECTIONS,
    table::CALLS,
    SCRIPTS,
    table::ASKS,
    table::PROCESSORS,
    BUSIEST,
    WAITS,
    table::FAILED,
    table::ALONE,
    table::FULLEST,
    table::OVER,
    table::IN_ERROR,
];

/// Many rare callers, so that each request requires Redis.
fn crowd(gateways: usize, demand: u64, parts: usize, nodes: usize) -> Plan {
    let proxy = Some(Proxied { parts, nodes });
    let line = Line { queues: true, timeout: 50_000, proxy, ..Line::default() };
    let callers = 1_000_000;
    Plan {
        gateways,
        demand,
        callers,
        rpu: 10,
        seconds: 1,
        joins: SECOND / 5,
        line,
        ..Plan::default()
    }
}

fn proxied(plan: &Plan) -> Proxied {
    plan.line.proxy.unwrap_or(Proxied { parts: 1, nodes: 1 })
}

pub fn print() {
    let mut plans = Vec::new();
    for gateways in [10, 30, 100] {
        for (demand, nodes) in [
            (10_000, &[1, 2][..]),
            (50_000, &[4, 8]),
            (200_000, &[16, 32]),
            (1_000_000, &[32, 64, 128]),
        ] {
            plans.extend(nodes.iter().map(|nodes| crowd(gateways, demand, *nodes, *nodes)));
        }
    }
    // More shards than primaries.
    plans.push(crowd(30, 200_000, 128, 32));
    table::print(
        "TB, account, 10/s, 1,000,000 callers all alike, 4 workers a gateway, 1 ms to primaries of one processor each \
         behind Envoy's proxy, timeout 50 ms; 1 s, in the first fifth of which the \
         gateways join",
        plans,
        COLUMNS,
    );
}
