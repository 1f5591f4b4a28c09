//! What the store of a rule is told of it.

use super::Unbuildable;
use diana_algorithm::{self as algorithm, Leasing};
use diana_policy::Rule;
use diana_store::{CounterSpec, stores};

/// What a rule's store is made from.
pub(super) fn counter_spec(
    rule: &Rule,
    keys: usize,
    rules: usize,
) -> Result<CounterSpec, Unbuildable> {
    let entry = algorithm::entry(rule.algo);
    let entry = entry.ok_or_else(|| Unbuildable::new(rule, "no such algorithm"))?;
    let keeps_used = entry.keeps_used(rule.settling.as_deref());
    let algorithm = entry.algorithm(&rule.quota, keeps_used);
    let lends = (entry.can)(&rule.quota).leasing != Leasing::Never;
    let is_even = rule.told.is_none() || !lends;
    let algorithm = algorithm.map_err(|_| Unbuildable::new(rule, "its numbers mean nothing"))?;
    Ok(CounterSpec {
        entry,
        quota: rule.quota,
        plans: rule.plans.clone(),
        gateways: 1,
        algorithm,
        keeps_used,
        unit_cost: if is_even { rule.quota.cost } else { 1 },
        fingerprint: rule.fingerprint,
        keys: if rule.actor.is_empty() { 1 } else { keys },
        lines: stores::lines(rules),
        daily: rule.daily,
        // What is reserved may come back, as from a request that another rule refuses.
        beside: rules > 1 || rule.settling.is_some(),
        settles: rule.settling.is_some(),
        checks: rule.settling.as_ref().is_some_and(|settling| settling.reserve == 0),
        on_failure: rule.on_failure,
    })
}
