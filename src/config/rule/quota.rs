//! `quota` of a rule: daily counts of many accounts in fixed memory.

use crate::context::Context;
use crate::fields::Fields;
use crate::mapping::Allowed::{Fraction, Size, Whole};
use crate::mapping::{Mapping, mapping, optional, required};
use crate::rule::algo::RuleAlgorithm;
use diana_algorithm::REGISTRY;
use diana_policy::MAX_DRAINED;
use diana_policy::bloom::Shape;
use diana_policy::time::Unit;
use diana_policy::{Plans, Scope};

pub(super) static QUOTA: Mapping = mapping(
    "quota",
    "a mapping such as `{accounts: 1000000, error: 0.01}`",
    &[
        required("accounts", Whole(1, 1_000_000_000)),
        optional(
            "error",
            Fraction(
                "the probability that an account is refused too early, 0.0001 … 0.1, such as `0.01`",
                100,
                100_000,
            ),
        ),
        optional("memory", Size(MAX_BYTES)),
    ],
);

/// In millionths.
const DEFAULT_ERROR: u64 = 10_000;

/// Maximum memory for all quotas of a worker: three quarters of that for callers.
pub const MAX_BYTES: u64 = 384 << 20;

/// Reads the `quota` of a rule. `limiter` is `None` if its other keys are invalid.
pub fn read(
    rule: &Fields<'_>,
    limiter: Option<&RuleAlgorithm>,
    plans: Option<&Plans>,
    (scope, is_all): (Scope, bool),
    context: &Context<'_>,
) -> Option<Shape> {
    let node = rule.get("quota")?;
    let fields = rule.mapping("quota")?;
    let accounts = fields.number("accounts");
    let error = if fields.has("error") { fields.number("error") } else { Some(DEFAULT_ERROR) };
    let memory = fields.number("memory");
    let limiter = limiter?;
    let largest = plans.map_or(limiter.quota, Plans::largest).rpu;
    report_unsupported(rule, limiter, largest, scope, is_all);
    let (accounts, error) = (accounts?, error?);
    let most = largest / limiter.quota.cost.max(1);
    let shape = Shape::new(accounts, error, most);
    let bytes = shape.bytes();
    if let (Some(memory), Some(node)) = (memory, fields.get("memory"))
        && bytes > memory
    {
        node.problem(format!(
            "{} KiB is too little, allowed: at least `{}KiB`, or `accounts: {}`, or a larger `error`",
            memory >> 10,
            bytes.div_ceil(1 << 10),
            (accounts * memory / bytes).max(1)
        ));
    }
    let all = context.quotas.get().saturating_add(bytes);
    context.quotas.set(all);
    if all > MAX_BYTES {
        node.problem(format!(
            "the quotas up to this one use up to {} MiB in each worker, allowed: at most {} MiB; reduce `accounts` or increase \
             `error`",
            all >> 20,
            MAX_BYTES >> 20
        ));
        return None;
    }
    Some(shape)
}

/// Reports keys of the rule that a quota does not support. `largest` is the highest `rpu` of all plans.
fn report_unsupported(
    rule: &Fields<'_>,
    limiter: &RuleAlgorithm,
    largest: u64,
    scope: Scope,
    is_all: bool,
) {
    let RuleAlgorithm { quota, cost_source, settling, entry, .. } = limiter;
    let response = settling.as_ref().is_some_and(|settling| settling.response_cost.is_some());
    let by_calendar = REGISTRY.iter().filter(|entry| entry.by_calendar).map(|entry| entry.short);
    for (key, is_wrong, allowed) in [
        ("unit", quota.unit != Unit::Day, "day"),
        ("algo", !entry.by_calendar, &*by_calendar.collect::<Vec<_>>().join(", ")),
        ("rpu", quota.rpu == 0 || largest > MAX_DRAINED, "1 … 1000000000"),
        ("cost", cost_source.is_some() || response, "a fixed number"),
        ("scope", scope == Scope::Gateway, "local, global"),
        ("count", settling.is_some() && !response, "no `count`, since a charge cannot be undone"),
        ("actor", is_all, "one that distinguishes callers"),
    ] {
        if is_wrong {
            rule.report(key, format!("allowed with `quota`: {allowed}"));
        }
    }
}
