//! Documents in one configuration of Envoy that share usage although their rules differ.

use diana_config::Reader;
use diana_policy::{Policy, Rule, Scope};

use crate::finding::FindingLevel;
use crate::manifest::{EnvoyPlugin, FoundRules};

/// A document that a plugin receives.
struct PluginDocument<'f> {
    index: usize,
    plugin: &'f EnvoyPlugin,
    policy: Policy,
}

/// The index of each document that shares usage with an earlier one, and what to report about it.
pub fn of(found: &[FoundRules]) -> Vec<(usize, FindingLevel, String)> {
    let documents: Vec<PluginDocument<'_>> =
        found.iter().enumerate().filter_map(document).collect();
    let shares = |(number, second): (usize, &PluginDocument<'_>)| {
        let mut earlier = documents.iter().take(number);
        let first = earlier.find(|first| share(first, second))?;
        let (level, message) = report(first, second);
        Some((second.index, level, message))
    };
    documents.iter().enumerate().filter_map(shares).collect()
}

/// A document without problems.
fn document((index, found): (usize, &FoundRules)) -> Option<PluginDocument<'_>> {
    let plugin = found.plugin.as_ref()?;
    let (policy, _) = Reader::new(found.module).read(found.source.as_ref().ok()?).ok()?;
    Some(PluginDocument { index, plugin, policy })
}

/// Returns true if two documents count different rules under one namespace: in the shared data of
/// one `vm_id`, or in one Redis.
fn share(first: &PluginDocument<'_>, second: &PluginDocument<'_>) -> bool {
    let differ = |is_counted: fn(&Rule) -> bool| {
        let one = digests(&first.policy, is_counted);
        let other = digests(&second.policy, is_counted);
        !one.is_empty() && !other.is_empty() && one != other
    };
    let place = |document: &PluginDocument<'_>| {
        document.policy.redis.as_ref().map(|redis| (redis.destination.clone(), redis.db))
    };
    first.plugin.envoy == second.plugin.envoy
        && namespace(first) == namespace(second)
        && (first.plugin.vm_id == second.plugin.vm_id && differ(|_| true)
            || place(first).is_some()
                && place(first) == place(second)
                && differ(|rule| rule.scope == Scope::Global))
}

/// The hashes of the rules that are counted in a place, in any order.
fn digests(policy: &Policy, is_counted: fn(&Rule) -> bool) -> Vec<u64> {
    let rules = policy.rules();
    let mut digests: Vec<u64> = rules.filter(|rule| is_counted(rule)).map(Rule::digest).collect();
    digests.sort_unstable();
    digests
}

/// Two documents that both name the namespace may do so on purpose.
fn report(first: &PluginDocument<'_>, second: &PluginDocument<'_>) -> (FindingLevel, String) {
    let is_named = [first, second].iter().all(|document| document.policy.namespace.is_some());
    let level = if is_named { FindingLevel::Advice } else { FindingLevel::Mistake };
    let is_one_root = !is_named && first.plugin.root_id == second.plugin.root_id;
    let message = format!(
        "another document {} the namespace `{}`, and rules of one use up the limits of the other; set another `namespace` \
         in each",
        if is_one_root { "has the same root id, so both count under" } else { "also counts under" },
        namespace(second)
    );
    (level, message)
}

/// The namespace under which a document counts.
fn namespace(document: &PluginDocument<'_>) -> String {
    let configured = document.policy.namespace.clone();
    configured
        .unwrap_or_else(|| diana_worker::default_namespace(document.plugin.root_id.as_bytes()))
}
