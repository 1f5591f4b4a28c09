//! The cost of a decision without a host: time, allocations, and memory per caller, for every
//! algorithm of the registry.

// A bench may panic, and measures real time.
#![allow(clippy::panic, clippy::indexing_slicing, clippy::disallowed_methods)]

mod bans;
mod case;
mod settled;

use std::hint::black_box;
use std::time::Instant;

use case::{Bench, CASES, Case, HOT, KEYS, QUOTA};
use diana_algorithm::{REGISTRY, fixed_window};
use diana_limiter::Verdict;

/// Budgets: nanoseconds for one rule, and bytes per caller.
const NANOSECONDS: f64 = 50.0;
/// For a decision with a quota.
const QUOTA_NANOSECONDS: f64 = 100.0;

/// For a decision with detection of hot callers.
const HOT_NANOSECONDS: f64 = 100.0;
const BYTES: u64 = 64;
/// A sliding window may have four more bytes per slice. Ten slices are the default.
const SLICES: u64 = 10 * 4;

/// Batches are so short that most of them run without an interruption.
const BATCH: usize = 1_000;
const BATCHES: usize = 1_001;

fn main() {
    println!("| algorithm | case | ns, best (median) | allocations | B/key | budget |");
    println!("| --- | --- | ---: | ---: | ---: | --- |");
    for entry in REGISTRY {
        for case in CASES {
            print(entry.short, case, NANOSECONDS);
        }
        print(entry.short, &HOT, HOT_NANOSECONDS);
    }
    print(fixed_window::ENTRY.short, &QUOTA, QUOTA_NANOSECONDS);
    println!();
    bans::print();
    println!();
    settled::print();
}

fn print(algo: &str, case: &Case, nanoseconds: f64) {
    let seen = measure(algo, case);
    let bytes = seen.bytes.map_or(String::new(), |bytes| bytes.to_string());
    println!(
        "| {algo} | {} | {:.0} ({:.0}) | {} | {bytes} | {} |",
        case.name,
        seen.best,
        seen.median,
        seen.allocations,
        budget(algo, case, nanoseconds, &seen)
    );
}

/// The measurements of one decision.
struct Seen {
    /// Nanoseconds in the fastest batch, since interference only adds time.
    best: f64,
    median: f64,
    allocations: f64,
    /// Per caller, if there are many.
    bytes: Option<u64>,
}

fn measure(algo: &str, case: &Case) -> Seen {
    let mut bench = Bench::new(case, algo);
    let empty = allocator::bytes();
    run(&mut bench, case.keys.max(BATCH));
    let bytes = (allocator::bytes() - empty) / case.keys as u64;

    let before = allocator::allocations();
    let mut times = [0.0; BATCHES];
    for time in &mut times {
        let start = Instant::now();
        run(&mut bench, BATCH);
        *time = start.elapsed().as_nanos() as f64 / BATCH as f64;
    }
    let allocations = (allocator::allocations() - before) as f64 / (BATCHES * BATCH) as f64;
    times.sort_by(f64::total_cmp);
    Seen {
        best: times[0],
        median: times[BATCHES / 2],
        allocations,
        bytes: (case.keys == KEYS).then_some(bytes),
    }
}

fn run(bench: &mut Bench, decisions: usize) {
    for _ in 0..decisions {
        let verdict = black_box(bench.decide());
        assert!(matches!(verdict, Verdict::Admit(..)), "refused: {verdict:?}");
    }
}

/// Each applicable budget, and whether it is met.
fn budget(algo: &str, case: &Case, nanoseconds: f64, seen: &Seen) -> String {
    let verdict = |met| if met { "met" } else { "MISSED" };
    let mut budgets = vec![format!("no allocation {}", verdict(seen.allocations == 0.0))];
    if case.budget {
        budgets.push(format!("≤ {nanoseconds} ns {}", verdict(seen.best <= nanoseconds)));
    }
    if let Some(bytes) = seen.bytes {
        let most = if algo == "SW" { BYTES + SLICES } else { BYTES };
        budgets.push(format!("≤ {most} B {}", verdict(bytes <= most)));
    }
    budgets.join(", ")
}
