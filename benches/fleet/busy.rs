//! The cost of a hundred thousand requests per second.

use crate::simulation::plan::{Line, Plan};
use crate::table::{self, Column, thousands};

const RULE: Column = ("rule", |plan, _| match plan.callers {
    1 => format!("all, {}/s", thousands(plan.rpu)),
    _ => format!("account, {}/s", thousands(plan.rpu)),
});
const CALLERS: Column = ("callers", |plan, _| match (plan.callers, plan.zipf) {
    (1, _) => "1".into(),
    (callers, 0.0) => format!("{}, all alike", thousands(callers.into())),
    (callers, zipf) => format!("{}, Zipf {zipf}", thousands(callers.into())),
});
const DEMAND: Column = ("requests/s", |plan, _| thousands(plan.demand));

/// Rules in order of increasing benefit from leases.
fn rules(all: &Plan) -> [Plan; 5] {
    let crowd = Plan { callers: 1_000_000, ..all.clone() };
    [
        Plan { rpu: 200_000, ..all.clone() },
        Plan { rpu: 50_000, ..all.clone() },
        Plan { rpu: 100, zipf: 1.1, ..crowd.clone() },
        Plan { rpu: 10, zipf: 1.0, ..crowd.clone() },
        Plan { rpu: 10, zipf: 0.0, ..crowd },
    ]
}

pub fn print() {
    let peak = Plan { demand: 100_000, seconds: 10, ..Plan::default() };
    let fleets = [2, 10, 50].map(|gateways| Plan { gateways, ..peak.clone() });
    table::print(
        "TB, 4 workers a gateway, 1 ms to a Redis of as many processors as it needs, 10 s",
        fleets.iter().flat_map(rules).collect(),
        &[
            table::GATEWAYS,
            RULE,
            CALLERS,
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
    let line = Line { queues: true, ..Line::default() };
    let crowd = Plan { callers: 1_000_000, rpu: 10, zipf: 1.0, line, ..peak };
    let mut plans = Vec::new();
    for gateways in [2, 10, 50] {
        for demand in [5_000, 10_000, 20_000, 30_000, 50_000, 100_000] {
            plans.push(Plan { gateways, demand, ..crowd.clone() });
        }
    }
    table::print(
        "TB, account, 10/s, 1,000,000 callers by Zipf's law (1.0), 4 workers a gateway, 1 ms to a Redis of one \
         processor, 10 s",
        plans,
        &[
            table::GATEWAYS,
            DEMAND,
            table::FULLEST,
            table::OVER,
            table::USED,
            table::IN_ERROR,
            table::CALLS,
            table::ASKS,
            table::PROCESSORS,
            table::WAITING,
            table::WAITS,
            table::FAILED,
            table::ALONE,
        ],
    );
}
