//! The fingerprint of a rule. Rules with equal fingerprints in successive configurations continue
//! the same counts.
//!
//! It depends on the rule's name, or else on its path, conditions, actor and its index among rules
//! of the same kind. In addition it depends on everything that determines the meaning of the state.
//! All other settings can change.

use crate::actors::ActorSources;
use diana_algorithm::{self as algorithm, Entry};
use diana_policy::key::KeyHasher;
use diana_policy::time::Unit;
use diana_policy::tree::Tree;
use diana_policy::{Limit, Prefix, Rule, Scope};

/// The fingerprint of an entry: its paths and conditions as written.
pub fn of_entry(urls: &[Prefix], conditions: Option<&Tree>, unless: Option<&Tree>) -> u64 {
    let mut hasher = KeyHasher::public();
    for url in urls {
        hasher.part(usize::from(url.ignores_case()), url.path());
    }
    add(&mut hasher, conditions.unwrap_or(&Tree::Null));
    if let Some(unless) = unless {
        add(&mut hasher, unless);
    }
    hasher.finish().hash
}

/// Sets the fingerprint of every rule. `zone` is the text of a time zone with rules for summer
/// time. Names that were not configured are still empty.
pub fn fill(limits: &mut [Limit], actors: &[ActorSources], zone: Option<&str>) {
    let mut kinds = Vec::new();
    for limit in limits {
        for rule in &mut limit.rules {
            let kind = kind(limit.fingerprint, rule, actors, zone);
            // The list is sorted, so that the time for thousands of rules is not quadratic.
            let (first, behind) = (
                kinds.partition_point(|known| *known < kind),
                kinds.partition_point(|known| *known <= kind),
            );
            kinds.insert(behind, kind);
            let mut hasher = KeyHasher::public();
            hasher.part(behind - first, &kind.to_le_bytes());
            rule.fingerprint = hasher.finish().hash;
        }
    }
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
