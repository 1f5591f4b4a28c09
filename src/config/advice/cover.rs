//! Rules that never refuse, since a stricter rule refuses the same requests before.

use super::about::{About, Advised, named};
use diana_policy::{Limit, Prefix, Rule, Scope};

/// Rules without effect: another rule of the entry counts the same, and its longer unit allows
/// less.
pub fn find_idle(about: &About<'_>) -> Vec<Advised> {
    let counts = |rule: &Rule| !rule.is_in_flight() && rule.quota.burst.is_none();
    let is_less = |less: &Rule, more: &Rule| {
        counts(less)
            && !less.shadow
            && less.over.is_none()
            && !about.is_replaced(less)
            && (&less.actor, less.scope, less.usual_cost())
                == (&more.actor, more.scope, more.usual_cost())
            && less.quota.unit.micros() > more.quota.unit.micros()
            && less.quota.rpu < more.quota.rpu
    };
    let is_idle = |limit: &Limit, rule: &Rule| {
        counts(rule) && limit.rules.iter().any(|other| is_less(other, rule))
    };
    let message = "these rules allow more per unit than another rule of the same entry and actor allows per larger unit, so they may \
                   never refuse a request";
    let limits = about.policy.limits.iter();
    let idle = limits.flat_map(|limit| limit.rules.iter().filter(move |rule| is_idle(limit, rule)));
    named(message, idle)
}

/// Rules that another one covers, each with that rule.
pub fn find_covered(about: &About<'_>) -> Vec<Advised> {
    let limits = &about.policy.limits;
    let rules =
        || limits.iter().flat_map(|limit| limit.rules.iter().map(move |rule| (limit, rule)));
    let strict = || rules().filter(|(_, rule)| !about.is_replaced(rule));
    let covered = rules().filter_map(|idle| {
        let strict = strict().find(|strict| is_covered(idle, *strict))?;
        let message = "the first of these rules never refuses a request, since the second one refuses it earlier";
        Some((message.into(), vec![idle.1.name.clone(), strict.1.name.clone()]))
    });
    covered.collect()
}

/// Returns true if another rule counts every request that a rule counts, and always refuses before
/// that rule is full.
fn is_covered((limit, idle): (&Limit, &Rule), (over, strict): (&Limit, &Rule)) -> bool {
    !std::ptr::eq(idle, strict)
        && counts_alike(idle)
        && counts_alike(strict)
        && strict.enforce == 100
        && !strict.shadow
        && strict.over.is_none()
        && idle.quota.cost == strict.quota.cost
        && idle.actor == strict.actor
        && width(strict.scope) >= width(idle.scope)
        && covers(limit, over)
        && [&over.except, &strict.except].iter().all(|except| except.is_empty())
        && is_stricter(idle, strict)
}

/// Returns true if a rule counts every request at a fixed cost, and never returns permits.
fn counts_alike(rule: &Rule) -> bool {
    rule.cost_source.is_none()
        && rule.settling.is_none()
        && rule.daily.is_none()
        && !rule.is_in_flight()
}

fn width(scope: Scope) -> u8 {
    match scope {
        Scope::Local => 0,
        Scope::Gateway => 1,
        Scope::Global => 2,
    }
}

/// Returns true if an entry applies to every request of another one: its paths cover all of the
/// other's, and it has no conditions.
fn covers(inner: &Limit, outer: &Limit) -> bool {
    let is_covered = |url| outer.urls.iter().any(|above| is_above(above, url));
    let is_same = std::ptr::eq(inner, outer);
    is_same || inner.urls.iter().all(is_covered) && outer.matcher.is_empty()
}

fn is_above(outer: &Prefix, inner: &Prefix) -> bool {
    let (path, above) = (inner.path(), outer.path());
    let is_above = above == b"/"
        || path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
    is_above && (outer.ignores_case() || !inner.ignores_case())
}

/// Returns true if one rule is full before another one for any sequence of requests.
fn is_stricter(idle: &Rule, strict: &Rule) -> bool {
    let rate = |rule: &Rule| {
        let quota = &rule.quota;
        (u128::from(quota.rpu), u128::from(quota.unit.micros()))
    };
    let ((most, unit), (few, other)) = (rate(idle), rate(strict));
    let is_slower = few * unit <= most * other;
    match (idle.algo, strict.algo) {
        // The longer window consists of whole shorter ones, all of which may be full.
        ("W", "W") if have_equal_starts(idle, strict) && unit % other == 0 => is_slower,
        // A window overlaps this number of shorter ones, including two partial ones.
        ("W" | "SW", "W" | "SW") => few * (unit.div_ceil(other) + 2) <= most,
        ("W" | "SW", "TB") => burst(strict) + few * (2 * unit).div_ceil(other) <= most,
        ("TB", "TB") => is_slower && burst(strict) <= burst(idle),
        ("TB", "W" | "SW") => is_slower && 2 * few <= burst(idle),
        _ => false,
    }
}

/// Returns true if windows of both rules begin alike.
fn have_equal_starts(one: &Rule, other: &Rule) -> bool {
    let starts = |rule: &Rule| (rule.quota.zone, rule.quota.starts);
    let month = |rule: &Rule| rule.plans.as_ref().and_then(|plans| plans.month_starts.clone());
    starts(one) == starts(other) && month(one) == month(other)
}

fn burst(rule: &Rule) -> u128 {
    u128::from(rule.quota.burst.unwrap_or(rule.quota.rpu))
}
