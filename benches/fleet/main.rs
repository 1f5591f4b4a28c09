//! Simulates fleets on one clock, and prints a table for each question; with arguments only those tables. The same command prints
//! the same tables. Fails if MEASURED.md has others.

// A bench may panic.
#![allow(clippy::panic, clippy::indexing_slicing)]

mod network;
mod worker;
mod world;

use std::fs;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

use diana_policy::time::{Micros, SECOND, Unit};

use world::{Plan, Seen, World};

/// Its heading, and the text of a cell.
type Column = (&'static str, fn(&Plan, &Seen) -> String);

/// Runs its fleets.
type Table = fn() -> String;

/// The file with the tables.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../MEASURED.md");

fn main() -> ExitCode {
    // Cargo adds an option.
    let names: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let tables: [(&str, Table); 8] = [
        ("size", size),
        ("thousand", thousand),
        ("below", below),
        ("busy", busy),
        ("after", after),
        ("shards", shards),
        ("many", many),
        ("faults", faults),
    ];
    let known = |name: &String| name == "laws" || tables.iter().any(|(table, _)| table == name);
    for name in &names {
        assert!(known(name), "no table is called {name}");
    }
    let is_chosen = |table: &str| names.is_empty() || names.iter().any(|name| name == table);
    if is_chosen("laws") {
        println!("{}", laws());
    }
    let chosen = tables.into_iter().filter(|(table, _)| is_chosen(table));
    let differ: Vec<&str> =
        chosen.filter(|(_, table)| !is_on_page(&table())).map(|it| it.0).collect();
    if differ.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("MEASURED.md has another table: {}. INSTA_UPDATE=always writes it", differ.join(", "));
    ExitCode::FAILURE
}

/// Prints a table. Returns true if the page has it. Its head identifies it there.
fn is_on_page(table: &str) -> bool {
    println!("{table}");
    let page = fs::read_to_string(PAGE).unwrap();
    let head = table.lines().next().unwrap();
    let begin = page.find(&format!("\n{head}\n")).expect("the page has the head of the table") + 1;
    let rest = &page[begin..];
    let old = &rest[..rest.find("\n\n").unwrap() + 1];
    if old != table && std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(PAGE, page.replace(old, table)).unwrap();
        return true;
    }
    old == table
}

/// Small fleets, for the checks of each run only.
fn laws() -> String {
    let mut plans = Vec::new();
    for algo in ["W", "SW", "TB"] {
        for gateways in [1, 2] {
            // Permits that are out at the end count as unused: some hundreds, however long the run is.
            let seconds = if algo == "TB" { 12 } else { 3 };
            let plan = Plan { algo, gateways, seconds, ..Plan::default() };
            plans.extend([1000, 8000, 12_000].map(|latency| Plan { latency, ..plan.clone() }));
            // All calls take about the same time.
            let far = [2000, 6000, 10_000, 14_000, 18_000];
            plans.extend(far.map(|latency| Plan { latency, spread: 2, ..plan.clone() }));
        }
        plans.push(Plan { algo, lost: 10, seconds: 3, ..Plan::default() });
        plans.push(Plan { algo, gateways: 2, demand: 8000, seconds: 3, ..Plan::default() });
        // A flood while Redis is away again and again.
        plans.extend([2, 3].map(|gateways| Plan {
            algo,
            gateways,
            rpu: 300,
            demand: 2000,
            away: 60_000,
            seconds: 6,
            ..Plan::default()
        }));
    }
    table(plans, &[ALGO, GATEWAYS, LATENCY, LOST, USED, CALLS, WAITING, FAILED, ALONE])
}

/// Growing fleets.
fn size() -> String {
    let mut plans = Vec::new();
    for algo in ["W", "SW", "TB"] {
        for (skew, gateways) in [(0, 1), (0, 10), (0, 100), (90, 10), (90, 100), (100, 1000)] {
            plans.push(Plan { algo, skew, gateways, ..Plan::default() });
        }
    }
    table(plans, &[ALGO, SKEW, GATEWAYS, USED, CALLS, PROCESSORS, WAITING])
}

/// A thousand gateways.
fn thousand() -> String {
    let plan = Plan { gateways: 1000, timeout: 100_000, ..Plan::default() };
    let mut plans: Vec<Plan> = ["W", "SW", "TB"].map(|algo| Plan { algo, ..plan.clone() }).into();
    let minute = Plan { unit: Unit::Minute, rpu: 600_000, seconds: 40, ..plan };
    plans.extend(["W", "SW"].map(|algo| Plan { algo, ..minute.clone() }));
    table(plans, &[ALGO, UNIT, GATEWAYS, USED, CALLS, PROCESSORS, WAITING, FAILED])
}

/// Growing fleets at four fifths of the limit.
fn below() -> String {
    let mut plans = Vec::new();
    for algo in ["W", "SW", "TB"] {
        plans.extend([10, 100, 1000].map(|gateways| Plan {
            algo,
            gateways,
            demand: 8000,
            seconds: 10,
            timeout: if gateways < 1000 { 20_000 } else { 100_000 },
            ..Plan::default()
        }));
    }
    table(plans, &[ALGO, GATEWAYS, REFUSED, CALLS, PROCESSORS, WAITING])
}

/// A hundred thousand requests a second.
fn busy() -> String {
    let mut plans = Vec::new();
    for (callers, rpu, zipf) in [
        (1, 200_000, 0.0),
        (1, 50_000, 0.0),
        (1_000_000, 100, 1.1),
        (1_000_000, 10, 1.0),
        (1_000_000, 10, 0.0),
    ] {
        let plan = Plan { callers, rpu, zipf, demand: 100_000, seconds: 10, ..Plan::default() };
        plans.extend([2, 10, 50].map(|gateways| Plan { gateways, ..plan.clone() }));
    }
    table(plans, &[RPU, CALLERS, GATEWAYS, CALLS, ASKS, PROCESSORS, WAITING])
}

/// The accounts of that table, with `ask: after`.
fn after() -> String {
    let plan = Plan { asks_after: true, callers: 1_000_000, rpu: 10, ..Plan::default() };
    let mut plans = Vec::new();
    for zipf in [1.0, 0.0] {
        plans.extend([2, 10, 50].map(|gateways| Plan {
            gateways,
            zipf,
            demand: 100_000,
            seconds: 10,
            ..plan.clone()
        }));
    }
    table(plans, &[RPU, CALLERS, GATEWAYS, OVER, MOST_OVER, CALLS, ASKS, PROCESSORS, WAITING])
}

/// Primaries behind Envoy's proxy, for callers that come so rarely that each request asks.
fn shards() -> String {
    let mut plans = Vec::new();
    for (demand, shards) in [
        (10_000, &[1, 2][..]),
        (50_000, &[4, 8]),
        (200_000, &[16, 32]),
        (1_000_000, &[32, 64, 128]),
    ] {
        for gateways in [10, 30, 100] {
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
    table(plans, &[DEMAND, GATEWAYS, SHARDS, PROCESSORS, WAITS, FAILED, ALONE])
}

/// Gateways that start at once, at one primary behind Envoy's proxy.
fn many() -> String {
    let plan = Plan { callers: 100_000, rpu: 10, demand: 1500, seconds: 10, ..Plan::default() };
    let many = |gateways| Plan { gateways, shards: Some(1), ..plan.clone() };
    table([100, 300, 1000].map(many).into(), &[GATEWAYS, PROCESSORS, WAITS, FAILED, ALONE])
}

/// Latency and loss.
fn faults() -> String {
    let mut plans = Vec::new();
    for latency in [200, 1000, 5000, 15_000] {
        plans.extend([0, 1, 10, 50].map(|lost| Plan {
            algo: "W",
            latency,
            lost,
            ..Plan::default()
        }));
    }
    table(plans, &[LATENCY, LOST, USED, FAILED, ALONE])
}

/// Runs the plans, one on each processor. Returns a row for each.
fn table(plans: Vec<Plan>, columns: &[Column]) -> String {
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
    let heads = columns.iter().map(|(head, _)| (*head).into()).collect();
    let rules = columns.iter().map(|column| if column.0 == ALGO.0 { "---" } else { "---:" }.into());
    let rows = rows.into_inner().unwrap().into_iter().map(Option::unwrap_or_default);
    let lines = [heads, rules.collect()].into_iter().chain(rows);
    lines.map(|cells: Vec<String>| format!("| {} |\n", cells.join(" | "))).collect()
}

const ALGO: Column = ("algo", |plan, _| format!("`{}`", plan.algo));
const GATEWAYS: Column = ("gateways", |plan, _| plan.gateways.to_string());
const SKEW: Column = ("on the first", |plan, _| match plan.skew {
    0 => "all alike".into(),
    skew => format!("{skew} %"),
});
const RPU: Column = ("limit/s", |plan, _| thousands(plan.rpu));
const CALLERS: Column = ("callers", |plan, _| match (plan.callers, plan.zipf) {
    (1, _) => "one".into(),
    (callers, 0.0) => format!("{}, all alike", thousands(callers.into())),
    (callers, zipf) => format!("{}, Zipf {zipf:.1}", thousands(callers.into())),
});
const UNIT: Column = ("a", |plan, _| plan.unit.name());
const OVER: Column = ("admitted too many", |_, seen| per_cent(seen.over, seen.admitted));
const MOST_OVER: Column = ("of one caller at most", |_, seen| seen.most_over.to_string());
const DEMAND: Column = ("requests/s", |plan, _| thousands(plan.demand));
const SHARDS: Column = ("primaries", |plan, _| plan.shards.unwrap_or(1).to_string());
const LATENCY: Column = ("round trip", |plan, _| milliseconds(plan.latency));
const LOST: Column = ("calls lost", |plan, _| format!("{} %", plan.lost as f64 / 10.0));
const USED: Column = ("used", |_, seen| per_cent(seen.admitted, seen.counted));
const CALLS: Column = ("calls/s", |plan, seen| thousands(plan.a_second(seen.calls as f64)));
const ASKS: Column =
    ("requests to Redis/s", |plan, seen| thousands(plan.a_second(seen.asks as f64)));
const PROCESSORS: Column = ("processors of Redis", |plan, seen| {
    // At the end of a run, some have work left.
    let most = plan.shards.map_or(f64::MAX, |shards| shards as f64);
    format!("{:.2}", (plan.a_second(seen.busy) as f64 / 1e6).min(most))
});
const WAITING: Column = ("wait", |_, seen| per_cent(seen.waits.len() as u64, seen.requests));
const WAITS: Column = ("p50, p99 of waits", |_, seen| {
    let wait = |part| seen.waits.get(seen.waits.len() * part / 100).map_or(0, |wait| *wait);
    format!("{}, {}", milliseconds(wait(50)), milliseconds(wait(99)))
});
const REFUSED: Column =
    ("refused", |_, seen| per_cent(seen.requests - seen.admitted, seen.requests));
const FAILED: Column = ("calls that fail", |_, seen| per_cent(seen.failed, seen.calls));
const ALONE: Column = ("degraded mode", |_, seen| per_cent(seen.alone, seen.requests));

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
