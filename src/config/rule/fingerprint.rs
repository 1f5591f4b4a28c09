//! The fingerprint of a rule. Rules with equal fingerprints in successive configurations continue
//! the same counts.
//!
//! It depends on the rule's name, or else on its content: paths, conditions, exemptions,
//! actor, and the sources of its count and its cost. Their order in the document does not matter.
//! Rules with equal content differ by their order. In addition it depends on everything
//! that determines the meaning of the state. All other settings can change.

use std::collections::{BTreeMap, BTreeSet};

use crate::actors::ActorSources;
use diana_algorithm::{self as algorithm, Entry};
use diana_policy::key::KeyHasher;
use diana_policy::time::Unit;
use diana_policy::tree::Tree;
use diana_policy::{Limit, Prefix, Rule, Scope};

/// The fingerprint of an entry: its paths and conditions as written, in canonical order.
pub fn of_entry(
    urls: &[Prefix],
    each: bool,
    conditions: Option<&Tree>,
    unless: Option<&Tree>,
) -> u64 {
    let mut hasher = KeyHasher::public();
    let mut urls: Vec<_> = urls.iter().map(|url| (url.path(), url.ignores_case())).collect();
    urls.sort_unstable();
    for (path, ignores_case) in urls {
        hasher.part(usize::from(ignores_case), path);
    }
    if each {
        hasher.part(18, &[]);
    }
    add(&mut hasher, &conditions.map_or(Tree::Null, canonical));
    if let Some(unless) = unless {
        add(&mut hasher, &canonical(unless));
    }
    hasher.finish().hash
}

/// A hash of the keys that distinguish rules of one entry, actor and algorithm: the `except` of the
/// entry, and `except`, `count` and the source of `cost` of the rule. Zero without any of them.
pub fn of_content(except: Option<&Tree>, rule: &Tree) -> u64 {
    let cost = value(rule, "cost");
    let cost = cost.and_then(|cost| value(cost, "response")).or(cost);
    let source = |kind| cost.and_then(|cost| value(cost, kind)).cloned();
    let ordered = |tree: Option<&Tree>| tree.map(canonical);
    let parts = [
        ordered(except),
        ordered(value(rule, "except")),
        ordered(value(rule, "count")),
        source("header"),
        source("metadata"),
    ];
    // Later sources, which do not change the hash of rules without them.
    let more = ["query", "bytes", "duration", "sum", "by"].map(source);
    if parts.iter().chain(&more).all(Option::is_none) {
        return 0;
    }
    let mut hasher = KeyHasher::public();
    parts.iter().for_each(|part| add(&mut hasher, part.as_ref().unwrap_or(&Tree::Null)));
    for (part, number) in more.iter().zip(20..) {
        if let Some(part) = part {
            hasher.part(number, &[]);
            add(&mut hasher, part);
        }
    }
    hasher.finish().hash
}

/// Completes the fingerprint of every rule, which so far is that of its content. `zone` is the text
/// of a time zone with rules for summer time. Names that were not configured are still empty.
/// Returns the fingerprints of rules without a name that differ only by their order.
pub fn fill(limits: &mut [Limit], actors: &[ActorSources], zone: Option<&str>) -> BTreeSet<u64> {
    // The fingerprints of equal rules, by their kind and content.
    let mut equal: BTreeMap<(u64, u64), Vec<u64>> = BTreeMap::new();
    let mut contents = Vec::new();
    for limit in &*limits {
        for rule in &limit.rules {
            let content = if rule.name.is_empty() { rule.fingerprint } else { 0 };
            let content = (kind(limit.fingerprint, rule, actors, zone), content);
            equal.insert(content, Vec::new());
            contents.push(content);
        }
    }
    let alone = |kind| equal.range((kind, 0)..=(kind, u64::MAX)).nth(1).is_none();
    let are_alone: Vec<bool> = contents.iter().map(|(kind, _)| alone(*kind)).collect();
    let rules = limits.iter_mut().flat_map(|limit| &mut limit.rules);
    for (rule, ((kind, content), is_alone)) in rules.zip(contents.into_iter().zip(are_alone)) {
        let twins = equal.entry((kind, content)).or_default();
        let mut hasher = KeyHasher::public();
        hasher.part(twins.len(), &kind.to_le_bytes());
        // A rule alone of its kind keeps the fingerprint that it has in earlier versions, which did
        // not know its content.
        if content != 0 && !is_alone {
            hasher.part(7, &content.to_le_bytes());
        }
        rule.fingerprint = hasher.finish().hash;
        twins.push(rule.fingerprint);
    }
    equal.into_values().filter(|twins| twins.len() > 1).flatten().collect()
}

fn kind(entry: u64, rule: &Rule, actors: &[ActorSources], zone: Option<&str>) -> u64 {
    let mut hasher = KeyHasher::public();
    let mut number = |number: i64| hasher.part(0, &number.to_le_bytes());
    // 0 is not the length of any other unit.
    let unit = rule.quota.unit;
    number(if unit == Unit::Month { 0 } else { unit.micros().cast_signed() });
    number(rule.scope as i64);
    let layout = algorithm::entry(rule.algo).map(|known| (known.layout)(&rule.quota));
    number(layout.unwrap_or(Entry::PLAIN).cast_signed());
    number(rule.quota.zone.standard.into());
    number(rule.words as i64);
    hasher.part(1, rule.algo.as_bytes());
    if let Some(shape) = rule.daily {
        // In Redis a change of the layout takes effect at once, not at midnight.
        let layout = if rule.scope == Scope::Global { shape.layout() } else { [0; 4] };
        layout.iter().for_each(|number| hasher.part(5, &number.to_le_bytes()));
    }
    if let (Some(zone), false) = (zone, rule.is_in_flight()) {
        hasher.part(6, zone.as_bytes());
    }
    if rule.name.is_empty() {
        hasher.part(2, &entry.to_le_bytes());
        for known in rule.actor.iter().filter_map(|&index| actors.get(index)) {
            hasher.part(3, known.actor.name.as_bytes());
        }
    } else {
        hasher.part(4, rule.name.as_bytes());
    }
    hasher.finish().hash
}

/// The value of a key of a mapping, unless it is empty.
fn value<'t>(tree: &'t Tree, key: &str) -> Option<&'t Tree> {
    tree.get(key).filter(|value| **value != Tree::Null)
}

/// The tree with the keys of mappings and the items of lists sorted, and without repeated items.
/// The order of both has no meaning in conditions, exemptions and outcomes, and the maps of a
/// `Struct` arrive in any order.
fn canonical(tree: &Tree) -> Tree {
    match tree {
        Tree::List(items) => {
            let mut items: Vec<Tree> = items.iter().map(canonical).collect();
            items.sort_unstable();
            items.dedup();
            Tree::List(items)
        }
        Tree::Map(pairs) => {
            let pair = |(key, value): &(String, Tree)| match value {
                // The keys that lead to a value within others.
                Tree::List(_) if key == "key" => (key.clone(), value.clone()),
                value => (key.clone(), canonical(value)),
            };
            let mut pairs: Vec<_> = pairs.iter().map(pair).collect();
            pairs.sort_unstable();
            Tree::Map(pairs)
        }
        other => other.clone(),
    }
}

/// Adds a tree. The kinds of nodes and the lengths of lists distinguish different trees.
fn add(hasher: &mut KeyHasher, tree: &Tree) {
    match tree {
        Tree::Null => hasher.part(10, &[]),
        Tree::Bool(value) => hasher.part(11, &[u8::from(*value)]),
        Tree::Int(value) => hasher.part(12, &value.to_le_bytes()),
        Tree::Number(text) => hasher.part(13, text.as_bytes()),
        Tree::Text(text) => hasher.part(14, text.as_bytes()),
        Tree::List(list) => {
            hasher.part(15, &(list.len() as u64).to_le_bytes());
            list.iter().for_each(|item| add(hasher, item));
        }
        Tree::Map(pairs) => {
            hasher.part(16, &(pairs.len() as u64).to_le_bytes());
            for (key, value) in pairs {
                hasher.part(17, key.as_bytes());
                add(hasher, value);
            }
        }
    }
}
