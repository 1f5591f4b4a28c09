//! How much memory a policy takes at most, by the layouts of all that is built from it.

use crate::hot::spotter::Spotter;
use crate::policy::{Limit, Memory, Policy};
use crate::store::stores;

/// A line for the log: what was configured and how much memory it can take.
#[must_use]
pub fn summary(policy: &Policy) -> String {
    let rules: usize = policy.limits.iter().map(|limit| limit.rules.len()).sum();
    let Memory { worker, shared } = memory(&policy.limits, policy.keys);
    let (worker, shared) = (worker.div_ceil(1024), shared.div_ceil(1024));
    let mut line = format!(
        "configuration accepted: {rules} rules; callers take at most {worker} KiB in each worker \
         and {shared} KiB of shared data"
    );
    for rule in policy.limits.iter().flat_map(|limit| &limit.rules) {
        let Some(daily) = rule.daily else { continue };
        let bytes = daily.bytes().div_ceil(1024);
        line.push_str(&format!("; of that the quota of `{}` {bytes} KiB", rule.name));
    }
    line
}

/// What the callers of these limits take at most.
#[must_use]
pub fn memory(limits: &[Limit], keys: usize) -> Memory {
    let mut sum = Memory::default();
    let rules: usize = limits.iter().map(|limit| limit.rules.len()).sum();
    for rule in limits.iter().flat_map(|limit| &limit.rules) {
        let callers = (!rule.actor.is_empty()).then_some(keys);
        let words = rule.words;
        let mut of = match rule.is_in_flight() && !rule.is_local() {
            true => stores::memory_of_places(callers),
            false => stores::memory(rule.scope, words, callers, rule.ban.is_some(), rules),
        };
        if let Some(shape) = rule.daily {
            // All but its bans lies in the filter.
            let rows = stores::memory(rule.scope, words, callers, false, rules);
            of.worker = of.worker - rows.worker + shape.bytes();
            of.shared -= rows.shared;
        }
        sum = sum.with(of);
        if rule.hot.is_some() {
            sum = sum.with(Spotter::memory(rule.is_local()));
        }
    }
    sum
}
