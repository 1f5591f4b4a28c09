//! `ban` of a rule.

use crate::fields::Fields;
use crate::mapping::Allowed::{Choice, Duration, Whole};
use crate::mapping::{Choices, Mapping, mapping, optional, required, words};
use diana_algorithm::calendar::Windows;
use diana_policy::time::{DAY, SECOND};
use diana_policy::{Ban, Quota, Settling};

/// The shortest duration is the time in which refusals reach the other workers.
pub(super) static BAN: Mapping = mapping(
    "ban",
    "a mapping such as `{after: 10, within: 1m, for: 5m, max: 1h}`",
    &[
        required("after", Whole(1, 1_000_000)),
        required("within", Duration(SECOND / 10, DAY)),
        required("for", Duration(SECOND / 10, 30 * DAY)),
        optional("max", Duration(SECOND / 10, 30 * DAY)),
        optional("halve_after", Duration(SECOND / 10, 30 * DAY)),
        optional("by", Choice(|| words(BY))),
        // The former name of `by`, which YAML 1.1 reads as a boolean.
        optional("on", Choice(|| words(BY))),
    ],
);

/// Whether a ban counts outcomes instead of refusals.
pub const BY: Choices<bool> = &[("refused", false), ("counted", true)];

/// Reads `ban`. If its rule is in shadow, it is set when the rule is compiled.
pub fn read(rule: &Fields<'_>) -> Option<Ban> {
    let fields = rule.mapping("ban")?;
    let (after, within) = (fields.number("after"), fields.number("within"));
    let period = fields.number("for");
    let max = if fields.has("max") { fields.number("max") } else { period };
    let halve_after = fields.number("halve_after").or(max);
    // Only validates. `check` reads it again after the rest of the rule.
    fields.choice(by(&fields), BY);
    if let (Some(node), true) = (fields.get("on"), fields.has("by")) {
        node.key_problem("duplicate key: `on` is the former name of `by`".into());
    }
    let (period, max) = (period?, max?);
    if max < period {
        fields.report("max", "shorter than `for`; must be at least as long".into());
    } else if let (Some(node), true) = (fields.get("halve_after"), max == period) {
        node.key_problem("requires a `max` longer than `for`".into());
    }
    Some(Ban {
        after: after?,
        within: within?,
        period,
        max,
        halve_after: halve_after?,
        is_shadow: false,
    })
}

/// Returns true if the `ban` of a rule counts outcomes instead of refusals.
pub fn is_by_outcome(rule: &Fields<'_>) -> bool {
    rule.mapping("ban").and_then(|ban| ban.choice(by(&ban), BY)).unwrap_or(false)
}

/// The name under which a ban has `by`.
fn by(ban: &Fields<'_>) -> &'static str {
    if ban.has("on") && !ban.has("by") { "on" } else { "by" }
}

/// Reports conflicts of a ban's `by` with the rest of the rule.
pub fn check(rule: &Fields<'_>, ban: &Ban, quota: &Quota, settling: Option<&Settling>) {
    if !is_by_outcome(rule) {
        return;
    }
    let Some(fields) = rule.mapping("ban") else { return };
    let Some(node) = fields.get(by(&fields)) else { return };
    let Quota { rpu, burst, .. } = *quota;
    if settling.is_none_or(|settling| settling.count.is_none()) {
        node.key_problem("`counted` requires `count`".into());
    }
    // A period of `within` overlaps at most this number of units.
    let units = ban.within.div_ceil(Windows::of(quota).shortest()).saturating_add(1);
    let most = rpu.saturating_mul(units).saturating_add(burst.unwrap_or(0));
    if ban.after > most {
        let message = format!(
            "found `{}`, which is never reached: `rpu` admits at most {most} in the time of `within`",
            ban.after
        );
        node.problem(message);
    }
}
