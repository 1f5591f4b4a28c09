//! Detects new configurations. Every worker and the main thread receive each configuration, and one
//! of them logs it.

use std::collections::BTreeSet;

use diana_policy::key::KeyHasher;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, SECOND};
use diana_policy::{Policy, Rule, words};

/// Maximum number of configurations that are recorded at the same time. Fixed, since shared data is
/// never freed.
const SLOTS: u64 = 8;

/// Ticks after its acceptance during which a configuration is not new. All workers receive it
/// within that time.
const KNOWN_FOR: Micros = 10 * SECOND;

/// Maximum number of recorded names of rules, and of their fingerprints: those of the current rules,
/// then those of former ones.
const MOST_RULES: usize = 4096;

/// Between the recorded names of two configurations.
const BETWEEN: &str = "\n\n";

/// The changes of a new configuration.
pub(crate) struct ConfigChanges {
    /// Rules that the previous configuration did not have. Empty if there was none.
    pub(crate) new_rules: Vec<String>,
    /// Rules of the previous configuration with names that this one does not have.
    pub(crate) ended_rules: Vec<String>,
    /// Whether it is the first configuration of its namespace in this process, as far as shared
    /// data shows.
    pub(crate) is_first: bool,
}

/// The changes of a configuration. `None` if it was accepted a moment ago.
pub(crate) fn detect(
    namespace: &str,
    text: &[u8],
    policy: &Policy,
    data: &dyn SharedData,
    now: Micros,
) -> Option<ConfigChanges> {
    let mut hasher = KeyHasher::public();
    hasher.part(0, text);
    let digest = hasher.finish().hash;
    let key = format!("diana/1/{namespace}/config/{}", digest % SLOTS);
    let ([accepted_at, known], number) = words::read(data, &key);
    if known == digest && now.saturating_sub(accepted_at) <= KNOWN_FOR {
        return None;
    }
    words::write([now, digest], data, &key, number);
    Some(compare(namespace, policy, data))
}

/// Compares the rules of a configuration with the previous ones of its namespace, and records them.
pub(crate) fn compare(namespace: &str, policy: &Policy, data: &dyn SharedData) -> ConfigChanges {
    let key = format!("diana/1/{namespace}/rules");
    let (before, number) = words::read_all(data, &key);
    let rules = || policy.rules();
    let now: Vec<u64> = rules().map(|rule| rule.fingerprint).collect();
    // A removed rule's usage may remain until it returns, or the rule may belong to another plugin.
    let removed = before.iter().filter(|fingerprint| !now.contains(fingerprint));
    let known: Vec<u64> = now.iter().chain(removed).copied().take(MOST_RULES).collect();
    let is_written = words::write_all(&known, data, &key, number);
    let ended_rules = replace_names(namespace, policy, data);
    if number.is_none() {
        return ConfigChanges { new_rules: Vec::new(), ended_rules, is_first: is_written };
    }
    let is_new = |rule: &&Rule| !before.contains(&rule.fingerprint);
    ConfigChanges {
        new_rules: rules().filter(is_new).map(|rule| rule.name.clone()).collect(),
        ended_rules,
        is_first: false,
    }
}

/// Records the names of a configuration's rules, and returns those of its former version that no configuration has any more.
/// Several filters may have the namespace: the former version is the one with most names in common.
fn replace_names(namespace: &str, policy: &Policy, data: &dyn SharedData) -> Vec<String> {
    let key = format!("diana/1/{namespace}/names");
    let (before, number) = data.get(&key).unzip();
    let before = String::from_utf8_lossy(before.as_deref().unwrap_or_default());
    let mut recorded: Vec<Vec<&str>> =
        before.split(BETWEEN).map(|names| names.lines().collect()).collect();
    let rules = policy.rules();
    let names: Vec<&str> = rules.map(|rule| rule.name.as_str()).collect();
    let known: BTreeSet<&str> = names.iter().copied().collect();
    let common = |other: &Vec<&str>| other.iter().filter(|name| known.contains(*name)).count();
    // The latest one comes last, and a configuration without rules replaces it.
    let common = recorded.iter().map(common).enumerate();
    let former = common.filter(|(_, count)| known.is_empty() || *count > 0).max_by_key(|it| it.1);
    let former = former.map(|(place, _)| recorded.remove(place)).unwrap_or_default();
    let is_left =
        |name: &&&str| known.contains(**name) || recorded.iter().flatten().any(|it| it == *name);
    let ended =
        former.iter().filter(|name| !is_left(name)).map(|name| (*name).to_owned()).collect();
    recorded.push(names);
    while recorded.len() > 1 && recorded.iter().map(Vec::len).sum::<usize>() > MOST_RULES {
        recorded.remove(0);
    }
    recorded.iter_mut().for_each(|names| names.truncate(MOST_RULES));
    let recorded: Vec<String> = recorded.iter().map(|names| names.join("\n")).collect();
    data.swap(&key, recorded.join(BETWEEN).as_bytes(), number);
    ended
}
