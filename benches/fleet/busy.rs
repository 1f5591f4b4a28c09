//! What a hundred thousand requests a second take.

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
const REDIS: Column = ("Redis", |plan, _| if plan.line.queues { "one" } else { "any" }.into());

pub fn print() {
    let all = Plan { demand: 100_000, seconds: 10, ..Plan::default() };
    let crowd = Plan { callers: 1_000_000, ..all.clone() };
    let mut plans = Vec::new();
    for (gateways, queues) in [(2, false), (10, false), (50, false), (2, true), (10, true)] {
        let line = Line { queues, ..Line::default() };
        for plan in [
            Plan { rpu: 200_000, ..all.clone() },
            Plan { rpu: 50_000, ..all.clone() },
            Plan { rpu: 100, zipf: 1.1, ..crowd.clone() },
            Plan { rpu: 10, zipf: 1.0, ..crowd.clone() },
            Plan { rpu: 10, zipf: 0.0, ..crowd.clone() },
        ] {
            plans.push(Plan { gateways, line: line.clone(), ..plan });
        }
    }
    table::print(
        "100,000 requests/s, TB, 4 workers a gateway, Redis 1 ms away, 10 s",
        plans,
        &[
            table::GATEWAYS,
            RULE,
            CALLERS,
            REDIS,
            table::FULLEST,
            table::OVER,
            table::USED,
            table::CALLS,
            table::ASKS,
            table::PROCESSORS,
            table::WAITING,
            table::WAITS,
            table::ALONE,
        ],
    );
}
