//! `ban` of a rule.

use crate::fields::Fields;
use crate::node::Node;
use crate::values;
use diana_core::calendar::Windows;
use diana_core::policy::{Ban, Quota, Settling};
use diana_core::time::{Micros, SECOND};
use diana_core::tree::Tree;

const WHAT: &str = "a mapping such as `{after: 10, within: 1m, for: 5m, max: 1h}`";
/// Its keys.
pub const KEYS: &[&str] = &["after", "within", "for", "max", "halve_after", "on"];
const ONS: [&str; 2] = ["refused", "counted"];
const DURATION: &str = "a duration such as `5m`";

/// Most refusals before a ban.
const MAX_AFTER: u64 = 1_000_000;

/// Refusals reach the other workers within this time.
const SHORTEST: Micros = SECOND / 10;

const DAY: Micros = 86_400 * SECOND;
const LONGEST: Micros = 30 * DAY;

/// Reads `ban`. Not inlined into the reader of rules, which is large as it is.
#[inline(never)]
pub fn read(rule: &Fields<'_>) -> Option<Ban> {
    let fields = Fields::read(rule.get("ban")?, WHAT, KEYS)?;
    let after = fields.require("after", "a whole number, 1 … 1000000");
    let after = after.and_then(|node| node.whole(1, MAX_AFTER));
    let within = time(&fields, "within", DAY, None);
    let period = time(&fields, "for", LONGEST, None);
    let max = time(&fields, "max", LONGEST, Some(period.unwrap_or(LONGEST)));
    let halve_after = time(&fields, "halve_after", LONGEST, Some(max.unwrap_or(LONGEST)));
    let (period, max) = (period?, max?);
    if max < period {
        fields.blame("max", "shorter than `for`; allowed: at least as long".into());
    } else if let (Some(node), true) = (fields.get("halve_after"), max == period) {
        node.key_problem("means nothing without a `max` above `for`".into());
    }
    Some(Ban { after: after?, within: within?, period, max, halve_after: halve_after? })
}

/// Whether a `ban` is one for outcomes that count, and not for refusals.
pub fn is_by_outcome(ban: &Node<'_>) -> bool {
    matches!(ban.tree(), Tree::Map(pairs) if pairs.iter().any(|(key, value)| key == "on" && value.text() == Some(ONS[1])))
}

/// Finds what `on` of a ban cannot mean beside what else its rule says.
pub fn blame(rule: &Fields<'_>, ban: &Ban, quota: &Quota, settling: Option<&Settling>) {
    let Some(on) = rule.get("ban").map(|ban| ban.descend("on")) else { return };
    let chosen = match on.tree() {
        Tree::Map(_) => return,
        _ => on.choice(&ONS, &ONS.join(", ")),
    };
    if chosen != Some(1) {
        return;
    }
    let Quota { rpu, burst, .. } = *quota;
    if settling.is_none_or(|settling| settling.count.is_none()) {
        on.key_problem("`counted` means nothing without `count`".into());
    }
    // In any time so long begin as many units and one more.
    let units = ban.within.div_ceil(Windows::of(quota).shortest()).saturating_add(1);
    let most = rpu.saturating_mul(units).saturating_add(burst.unwrap_or(0));
    if ban.after > most {
        let message = format!(
            "found `{}`, which never happens: `rpu` lets at most {most} through `within` that time",
            ban.after
        );
        on.problem(message);
    }
}

/// A duration under a key, which is required if it has no default.
#[inline(never)]
fn time(
    fields: &Fields<'_>,
    key: &'static str,
    most: Micros,
    default: Option<Micros>,
) -> Option<Micros> {
    match (fields.get(key), default) {
        (None, Some(default)) => Some(default),
        (None, None) => {
            fields.require(key, DURATION);
            None
        }
        (Some(node), _) => values::duration(node, SHORTEST, most),
    }
}
