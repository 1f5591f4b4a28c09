//! The maximum memory of a policy, computed from the layouts of its parts.

use diana_policy::{Limit, Memory, Policy};
use diana_store::hot::spotter::Spotter;
use diana_store::stores;

/// A line for the log: the number of rules and their maximum memory.
#[must_use]
pub fn summary(policy: &Policy) -> String {
    let rules: usize = policy.limits.iter().map(|limit| limit.rules.len()).sum();
    let Memory { worker, shared } = memory(&policy.limits, policy.keys);
    let (worker, shared) = (worker.div_ceil(1024), shared.div_ceil(1024));
    let mut line = format!(
        "configuration accepted: {rules} rule{}; callers take at most {worker} KiB in each worker \
         and {shared} KiB of shared data",
        if rules == 1 { "" } else { "s" }
    );
    for rule in policy.rules() {
        let Some(daily) = rule.daily else { continue };
        let bytes = daily.bytes().div_ceil(1024);
        line.push_str(&format!("; of this, the quota of `{}` takes {bytes} KiB", rule.name));
    }
    line
}

/// The maximum memory for the callers of these limits, `keys` of each rule without a number of its own.
#[must_use]
pub fn memory(limits: &[Limit], keys: usize) -> Memory {
    let mut sum = Memory::default();
    let rules: usize = limits.iter().map(|limit| limit.rules.len()).sum();
    let all = limits.iter().flat_map(|limit| limit.rules.iter().map(|rule| (limit.each, rule)));
    for (each, rule) in all {
        let callers = (each || !rule.actor.is_empty()).then_some(rule.keys.unwrap_or(keys));
        let words = rule.words;
        sum = sum.with(match rule.daily {
            Some(shape) => Memory { worker: shape.bytes(), shared: 0 },
            None if rule.is_in_flight() && !rule.is_local() => stores::in_flight_memory(callers),
            None => stores::memory(rule.scope, words, callers, rules),
        });
        if rule.asks_after {
            sum = sum.with(stores::memory(rule.scope, words, callers, rules));
        }
        if rule.ban.is_some() {
            sum = sum.with(diana_store::bans::memory(rule.scope, callers.unwrap_or(1)));
        }
        if rule.hot.is_some() {
            sum = sum.with(Spotter::memory(rule.is_local()));
        }
    }
    sum
}
