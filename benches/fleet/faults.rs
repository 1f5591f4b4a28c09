//! The effect of latency and loss.

use crate::simulation::plan::{Line, Plan};
use crate::table::{self, Column};

const LATENCY: Column =
    ("there and back", |plan, _| format!("{} ms", plan.line.latency as f64 / 1e3));
const LOST: Column = ("calls lost", |plan, _| format!("{} %", plan.line.lost as f64 / 10.0));

pub fn print() {
    let mut plans = Vec::new();
    for latency in [200, 1000, 5000, 15_000] {
        for lost in [0, 1, 10, 50] {
            let line = Line { latency, lost, ..Line::default() };
            plans.push(Plan { algo: "W", line, ..Plan::default() });
        }
    }
    table::print(
        "One limit of 10,000/s (W), 20,000 requests/s, 10 gateways, 4 workers each, timeout 20 ms, 30 s",
        plans,
        &[
            LATENCY,
            LOST,
            table::FAILED,
            table::ALONE,
            table::MOST,
            table::OVER,
            table::USED,
            table::IN_ERROR,
            table::CALLS,
            table::WAITING,
            table::WAITS,
        ],
    );
}
