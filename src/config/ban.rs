//! `ban` of a rule.

use super::duration;
use super::fields::Fields;
use crate::ban::Ban;
use crate::time::{Micros, SECOND, spell};

const WHAT: &str = "a mapping such as `{after: 10, within: 1m, for: 5m, max: 1h}`";
const KEYS: &[&str] = &["after", "within", "for", "max", "halve_after"];
const DURATION: &str = "a duration such as `5m`";

/// Most refusals before a ban.
const MAX_AFTER: u64 = 1_000_000;

/// Refusals reach the other workers within this time.
const SHORTEST: Micros = SECOND / 10;

const DAY: Micros = 86_400 * SECOND;
const LONGEST: Micros = 30 * DAY;

/// Reads `ban`.
pub fn read(rule: &Fields<'_>) -> Option<Ban> {
    let fields = Fields::read(rule.get("ban")?, WHAT, KEYS, &[])?;
    let after = fields.require("after", "a whole number, 1 … 1000000");
    let after = after.and_then(|node| node.whole(1, MAX_AFTER));
    let required = |key, most| {
        fields.require(key, DURATION).and_then(|node| duration::read(node, SHORTEST, most))
    };
    let (within, period) = (required("within", DAY), required("for", LONGEST));
    let optional = |key| fields.get(key).map(|node| duration::read(node, SHORTEST, LONGEST));
    let (max, halve_after) = (optional("max"), optional("halve_after"));
    let (within, period) = (within?, period?);
    let max = max.unwrap_or(Some(period))?;
    if max < period {
        let (max, period) = (spell(max), spell(period));
        fields.blame("max", format!("found `{max}`, allowed: at least `for`, {period}"));
    } else if let (Some(node), true) = (fields.get("halve_after"), max == period) {
        node.key_problem("means nothing without a `max` above `for`".into());
    }
    Some(Ban { after: after?, within, period, max, halve_after: halve_after.unwrap_or(Some(max))? })
}
