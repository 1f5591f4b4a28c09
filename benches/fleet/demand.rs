//! The effect of demand near and above the limit.

use crate::simulation::plan::Plan;
use crate::table::{self, Column, thousands};

const DEMAND: Column = ("requests/s", |plan, _| thousands(plan.demand));

pub fn print() {
    let mut plans = Vec::new();
    for algo in ["W", "SW", "TB"] {
        for demand in [5_000, 9_000, 10_000, 11_000, 20_000, 100_000] {
            plans.push(Plan { algo, demand, seconds: 20, ..Plan::default() });
        }
    }
    table::print(
        "One limit of 10,000/s for 10 gateways, 4 workers each, Redis 1 ms away, 20 s",
        plans,
        &[
            table::ALGO,
            DEMAND,
            table::FULLEST,
            table::OVER,
            table::USED,
            table::CALLS,
            table::ASKS,
            table::PROCESSORS,
            table::WAITING,
            table::WAITS,
        ],
    );
}
