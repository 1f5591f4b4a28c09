//! `in_flight` of a rule: the limit of concurrent requests, in place of a rate.

use super::algo::RuleAlgorithm;
use crate::fields::Fields;
use crate::mapping::Allowed::{self, Whole};
use diana_algorithm::IN_FLIGHT;
use diana_policy::time::Unit;
use diana_policy::{Quota, Settling};

/// `in_flight` of a rule or of a plan.
pub(crate) const LIMIT: Allowed = Whole(1, 1_000_000);

/// Keys of rules that count by time or by cost.
const FORBIDDEN: &[&str] = &[
    "unit",
    "rpu",
    "algo",
    "cost",
    "count",
    "ban",
    "quota",
    "day_starts",
    "week_starts",
    "month_starts",
];

/// Reads the algorithm of a rule with this key.
pub fn read(fields: &Fields<'_>) -> Option<RuleAlgorithm> {
    let more = fields.more();
    let others = FORBIDDEN.iter().copied().chain(more.iter().map(|key| key.name));
    let others: Vec<_> = others.filter_map(|key| fields.get(key)).collect();
    for node in &others {
        node.key_problem("not allowed with `in_flight`".into());
    }
    let limit = fields.number("in_flight")?;
    if !others.is_empty() {
        return None;
    }
    // The unit has no meaning for this algorithm.
    let quota = Quota::new(Unit::Second, limit);
    let algorithm = (IN_FLIGHT.build)(&quota).ok()?;
    let settling =
        Settling { reserve: 1, response_cost: None, count: None, bans: false, is_slot: true };
    Some(RuleAlgorithm {
        quota,
        limit_source: None,
        month_source: None,
        cost_source: None,
        settling: Some(settling),
        entry: IN_FLIGHT,
        algorithm,
    })
}
