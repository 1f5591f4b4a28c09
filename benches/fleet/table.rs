//! Many simulations, and a table of their results.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;

use crate::simulation;
use crate::simulation::fullest::Fullest;
use crate::simulation::plan::Plan;
use crate::simulation::seen::Seen;

/// A column: its head, and the function of its cells.
pub type Column = (&'static str, fn(&Plan, &Seen) -> String);

/// Runs all plans, as many at a time as there are processors, and prints a row for each.
pub fn print(title: &str, plans: Vec<Plan>, columns: &[Column]) {
    println!("\n{title}\n");
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    println!("| {} |\n|{}", heads.join(" | "), " ---: |".repeat(columns.len()));
    let left = Mutex::new(plans.iter().enumerate());
    let (done, seen) = channel();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let (left, done) = (&left, done.clone());
            scope.spawn(move || {
                while let Some((number, plan)) = { left.lock().unwrap().next() } {
                    done.send((number, simulation::run(plan))).unwrap();
                }
            });
        }
        drop(done);
        let mut rows: Vec<Option<Seen>> = vec![None; plans.len()];
        let mut next = 0;
        for (number, seen) in seen {
            rows[number] = Some(seen);
            while let Some(Some(seen)) = rows.get(next) {
                let cells: Vec<String> =
                    columns.iter().map(|(_, cell)| cell(&plans[next], seen)).collect();
                println!("| {} |", cells.join(" | "));
                next += 1;
            }
        }
    });
}

pub const GATEWAYS: Column = ("gateways", |plan, _| plan.gateways.to_string());
pub const ALGO: Column = ("algo", |plan, _| plan.algo.into());
pub const DEMAND: Column = ("demand", |plan, _| match plan.skew {
    0 => "even".into(),
    skew => format!("{skew} % on one"),
});
/// Used permits, of the allowed ones.
pub const FULLEST: Column = ("fullest", |_, seen| spell(seen.extremes.fullest));
pub const MOST: Column = ("most in a second", |_, seen| spell(seen.extremes.most));
pub const OVER: Column = ("over", |_, seen| match seen.extremes.fullest {
    fullest if fullest.over() == 0 => "none".into(),
    fullest => {
        let share = fullest.over() as f64 / fullest.allowed as f64;
        format!("{} ({:.2} %)", fullest.over(), 100.0 * share)
    }
});
pub const USED: Column = ("used", |_, seen| per_cent(seen.used));
/// Only while leases of the caller were outstanding.
pub const IN_ERROR: Column = ("refused although it fitted", |_, seen| thousands(seen.in_error));
pub const CALLS: Column = ("calls/s", |_, seen| thousands(seen.calls as u64));
pub const ASKS: Column = ("asks/s", |_, seen| thousands(seen.asks as u64));
pub const WAITING: Column = ("decisions that wait for Redis", |_, seen| per_cent(seen.waiting));
pub const WAITS: Column = ("p50, p99 of waits", |_, seen| {
    let [half, most, _] = seen.waits.map(|wait| wait as f64 / 1000.0);
    format!("{half:.1}, {most:.1} ms")
});
pub const PROCESSORS: Column = ("Redis, processors", |_, seen| format!("{:.2}", seen.processors));
pub const ALONE: Column = ("judged alone", |_, seen| per_cent(seen.alone));
pub const FAILED: Column = ("calls that fail", |_, seen| per_cent(seen.failed));

fn spell(Fullest { used, allowed }: Fullest) -> String {
    format!("{} of {}", thousands(used), thousands(allowed))
}

fn per_cent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A number with commas.
pub fn thousands(number: u64) -> String {
    match number / 1000 {
        0 => number.to_string(),
        more => format!("{},{:03}", thousands(more), number % 1000),
    }
}
