//! The effect of the fleet's size.

use crate::simulation::plan::Plan;
use crate::table;

pub fn print() {
    let mut plans = Vec::new();
    for algo in ["W", "SW", "TB"] {
        for skew in [0, 90] {
            for gateways in [1, 2, 5, 10, 20, 50, 100] {
                plans.push(Plan { algo, skew, gateways, ..Plan::default() });
            }
        }
    }
    table::print(
        "One limit of 10,000/s for the fleet, 20,000 requests/s, 4 workers a gateway, Redis 1 ms away, 30 s",
        plans,
        &[
            table::ALGO,
            table::DEMAND,
            table::GATEWAYS,
            table::FULLEST,
            table::OVER,
            table::USED,
            table::IN_ERROR,
            table::CALLS,
            table::ASKS,
            table::PROCESSORS,
            table::WAITING,
            table::WAITS,
        ],
    );
}
