//! Simulates fleets on one clock, and prints a table for each question; with arguments only those tables. The same command prints
//! the same tables.

// A bench may panic.
#![allow(clippy::panic, clippy::indexing_slicing)]

mod network;
mod worker;
mod world;

use std::sync::Mutex;
use std::thread;

use diana_policy::time::{Micros, SECOND};

use world::{Plan, Seen, World};

/// Its heading, and the text of a cell.
type Column = (&'static str, fn(&Plan, &Seen) -> String);

fn main() {
    // Cargo adds an option.
    let names: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let tables: [(&str, fn()); 4] =
        [("size", size), ("busy", busy), ("shards", shards), ("faults", faults)];
    for name in &names {
        assert!(tables.iter().any(|(table, _)| table == name), "no table is called {name}");
    }
    for (name, print) in tables {
        if names.is_empty() || names.iter().any(|it| it == name) {
            print();
        }
    }
}

/// Growing fleets.
fn size() {
    let mut plans = Vec::new();
    for algo in ["W", "SW", "TB"] {
        for (skew, gateways) in [(0, 1), (0, 10), (0, 100), (90, 10), (90, 100)] {
            plans.push(Plan { algo, skew, gateways, ..Plan::default() });
        }
    }
    let columns = [ALGO, GATEWAYS, SKEW, USED, CALLS, ASKS, PROCESSORS, WAITING, WAITS];
    print(
        "10,000/s for the fleet, 20,000 requests/s, 1 ms to Redis and back, 30 s",
        plans,
        &columns,
    );
}

/// A hundred thousand requests a second.
fn busy() {
    let mut plans = Vec::new();
    for gateways in [2, 10, 50] {
        let all = Plan { gateways, demand: 100_000, seconds: 10, ..Plan::default() };
        let crowd = Plan { callers: 1_000_000, ..all.clone() };
        plans.push(Plan { rpu: 200_000, ..all.clone() });
        plans.push(Plan { rpu: 50_000, ..all });
        plans.push(Plan { rpu: 100, zipf: 1.1, ..crowd.clone() });
        plans.push(Plan { rpu: 10, zipf: 1.0, ..crowd.clone() });
        plans.push(Plan { rpu: 10, zipf: 0.0, ..crowd });
    }
    let columns = [GATEWAYS, RPU, CALLERS, USED, CALLS, ASKS, PROCESSORS, WAITING, WAITS];
    print("TB, 100,000 requests/s, as many processors of Redis as it needs, 10 s", plans, &columns);
}

/// Primaries behind Envoy's proxy, for callers that come so rarely that each request asks.
fn shards() {
    let mut plans = Vec::new();
    for gateways in [10, 30, 100] {
        for (demand, shards) in [
            (10_000, &[1, 2][..]),
            (50_000, &[4, 8]),
            (200_000, &[16, 32]),
            (1_000_000, &[32, 64, 128]),
        ] {
            plans.extend(shards.iter().map(|shards| Plan {
                gateways,
                demand,
                callers: 1_000_000,
                rpu: 10,
                seconds: 1,
                joins: SECOND / 5,
                timeout: 50_000,
                shards: Some(*shards),
                ..Plan::default()
            }));
        }
    }
    let columns = [GATEWAYS, DEMAND, SHARDS, CALLS, ASKS, PROCESSORS, WAITS, FAILED, ALONE];
    print("TB, 10/s for each of a million accounts, timeout 50 ms, 1 s", plans, &columns);
}

/// Latency and loss.
fn faults() {
    let mut plans = Vec::new();
    for latency in [200, 1000, 5000, 15_000] {
        plans.extend([0, 1, 10, 50].map(|lost| Plan {
            algo: "W",
            latency,
            lost,
            ..Plan::default()
        }));
    }
    let columns = [LATENCY, LOST, FAILED, ALONE, USED, CALLS, WAITING, WAITS];
    print("W, 10,000/s for 10 gateways, 20,000 requests/s, timeout 20 ms, 30 s", plans, &columns);
}

/// Runs the plans, one on each processor, then prints a row for each.
fn print(title: &str, plans: Vec<Plan>, columns: &[Column]) {
    let (queue, rows) = (Mutex::new(plans.iter().enumerate()), Mutex::new(vec![None; plans.len()]));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((number, plan)) = { queue.lock().unwrap().next() } {
                    let seen = World::new(plan).run();
                    rows.lock().unwrap()[number] =
                        Some(columns.iter().map(|it| it.1(plan, &seen)).collect());
                }
            });
        }
    });
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    println!("\n{title}\n\n| {} |\n|{}", heads.join(" | "), " ---: |".repeat(columns.len()));
    for row in rows.into_inner().unwrap() {
        println!("| {} |", row.unwrap_or_else(Vec::<String>::new).join(" | "));
    }
}

const ALGO: Column = ("algo", |plan, _| plan.algo.into());
const GATEWAYS: Column = ("gateways", |plan, _| plan.gateways.to_string());
const SKEW: Column = ("on the first", |plan, _| format!("{} %", plan.skew));
const RPU: Column = ("limit/s", |plan, _| thousands(plan.rpu));
const CALLERS: Column =
    ("callers, Zipf", |plan, _| format!("{}, {}", thousands(plan.callers.into()), plan.zipf));
const DEMAND: Column = ("requests/s", |plan, _| thousands(plan.demand));
const SHARDS: Column = ("primaries", |plan, _| plan.shards.unwrap_or(1).to_string());
const LATENCY: Column = ("there and back", |plan, _| milliseconds(plan.latency));
const LOST: Column = ("calls lost", |plan, _| format!("{} %", plan.lost as f64 / 10.0));
const USED: Column = ("used", |_, seen| per_cent(seen.admitted, seen.counted));
const CALLS: Column = ("calls/s", |plan, seen| thousands(plan.a_second(seen.calls as f64)));
const ASKS: Column = ("asks/s", |plan, seen| thousands(plan.a_second(seen.asks as f64)));
const PROCESSORS: Column =
    ("processors of Redis", |plan, seen| format!("{:.2}", plan.a_second(seen.busy) as f64 / 1e6));
const WAITING: Column =
    ("wait for Redis", |_, seen| per_cent(seen.waits.len() as u64, seen.requests));
const WAITS: Column = ("p50, p99 of waits", |_, seen| {
    let wait = |part| seen.waits.get(seen.waits.len() * part / 100).map_or(0, |wait| *wait);
    format!("{}, {}", milliseconds(wait(50)), milliseconds(wait(99)))
});
const FAILED: Column = ("calls that fail", |_, seen| per_cent(seen.failed, seen.calls));
const ALONE: Column =
    ("requests judged by a gateway alone", |_, seen| per_cent(seen.alone, seen.requests));

fn milliseconds(time: Micros) -> String {
    format!("{:.1} ms", time as f64 / 1e3)
}

fn per_cent(part: u64, of: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / of.max(1) as f64)
}

/// A number with commas.
fn thousands(number: u64) -> String {
    match number / 1000 {
        0 => number.to_string(),
        more => format!("{},{:03}", thousands(more), number % 1000),
    }
}
