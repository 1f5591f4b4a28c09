//! The enforced limit while Redis is unavailable.

use diana_policy::time::SECOND;

use crate::simulation::plan::{Line, Plan};
use crate::table::{self, Column};

const CUT_OFF: Column = ("cut off", |plan, _| plan.line.cut_off.to_string());
const FOR: Column =
    ("for", |plan, _| format!("{} s", (plan.line.away.end - plan.line.away.start) / SECOND));
const BACK: Column = ("together again after", |plan, seen| match seen.last_alone {
    Some(last) => format!("{:.2} s", last.saturating_sub(plan.line.away.end) as f64 / 1e6),
    None => "never apart".into(),
});

pub fn print() {
    let mut plans = Vec::new();
    for algo in ["W", "SW", "TB"] {
        for (gateways, cut_off, seconds) in
            [(10, 10, 3), (10, 10, 10), (10, 3, 3), (10, 1, 10), (3, 3, 3), (100, 100, 3)]
        {
            let away = 5 * SECOND + SECOND / 2..5 * SECOND + SECOND / 2 + seconds * SECOND;
            let line = Line { away, cut_off, ..Line::default() };
            plans.push(Plan { algo, gateways, line, seconds: 20, ..Plan::default() });
        }
    }
    table::print(
        "One limit of 10,000/s, 20,000 requests/s, 4 workers a gateway, timeout 20 ms, Redis away",
        plans,
        &[
            table::ALGO,
            table::GATEWAYS,
            CUT_OFF,
            FOR,
            table::MOST,
            table::OVER,
            table::USED,
            table::IN_ERROR,
            table::FAILED,
            table::ALONE,
            BACK,
        ],
    );
}
