//! Which configurations are news. Every worker gets each, and the main thread; one of them tells.

use diana_policy::key::KeyHasher;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, SECOND};
use diana_policy::{Policy, Rule};

/// How many different configurations can be told apart at once. A fixed number, since shared data
/// is never freed.
const SLOTS: u64 = 8;

/// How long an accepted configuration is no news, in ticks: all workers get it within that time.
const FOR: Micros = 10 * SECOND;

/// How many rules' fingerprints are remembered: those in force, then those that were in force last.
const KNOWN: usize = 4096;

/// What is new.
pub(crate) struct News {
    /// Rules that the configuration before did not have, unless there was none.
    pub(crate) anew: Vec<String>,
    /// Whether it is the first configuration of its namespace in this process, as far as shared data shows.
    pub(crate) is_first: bool,
}

/// What a configuration brings, unless it was accepted a moment ago.
pub(crate) fn of(
    namespace: &str,
    text: &[u8],
    policy: &Policy,
    data: &dyn SharedData,
    now: Micros,
) -> Option<News> {
    let mut hasher = KeyHasher::public();
    hasher.part(0, text);
    let digest = hasher.finish().hash;
    let key = format!("diana/1/{namespace}/config/{}", digest % SLOTS);
    let known = data.get(&key).and_then(|(bytes, _)| <[u8; 16]>::try_from(bytes).ok());
    let known = known.map_or(0, u128::from_le_bytes);
    if (known >> 64) as u64 == digest && now.saturating_sub(known as u64) <= FOR {
        return None;
    }
    let told = u128::from(digest) << 64 | u128::from(now);
    write(data, &key, &told.to_le_bytes());
    Some(anew(namespace, policy, data))
}

/// Compares the rules of a configuration with those that this namespace had before, and records them.
pub(crate) fn anew(namespace: &str, policy: &Policy, data: &dyn SharedData) -> News {
    let key = format!("diana/1/{namespace}/rules");
    let (bytes, number) = data.get(&key).unzip();
    let (before, _) = bytes.as_deref().unwrap_or_default().as_chunks::<8>();
    let rules = || policy.limits.iter().flat_map(|limit| &limit.rules);
    let now: Vec<[u8; 8]> = rules().map(|rule| rule.fingerprint.to_le_bytes()).collect();
    // What a rule used may still be there when it comes back, or belong to another plugin.
    let gone = before.iter().filter(|fingerprint| !now.contains(fingerprint));
    let mut known = Vec::with_capacity((now.len() + before.len()) * 8);
    now.iter().chain(gone).take(KNOWN).for_each(|fingerprint| known.extend(fingerprint));
    let is_written = data.swap(&key, &known, number);
    if number.is_none() {
        return News { anew: Vec::new(), is_first: is_written };
    }
    let is_new = |rule: &&Rule| !before.contains(&rule.fingerprint.to_le_bytes());
    News { anew: rules().filter(is_new).map(|rule| rule.name.clone()).collect(), is_first: false }
}

/// Writes a value over the one that is there. Whoever writes at the same time writes the like.
fn write(data: &dyn SharedData, key: &str, value: &[u8]) {
    let number = data.get(key).map(|(_, number)| number);
    data.swap(key, value, number);
}
