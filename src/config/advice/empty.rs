//! `unless` and `except` with empty mappings and lists, as templates write without values.

use std::collections::BTreeMap;

use super::about::{About, Advised};
use diana_policy::Rule;
use diana_policy::tree::Tree;

/// A finding for each such place.
pub fn find(about: &About<'_>) -> Vec<Advised> {
    let About { policy, top, entries, .. } = about;
    // The rules by the message.
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |message: String, rules: &[Rule]| {
        let names = rules.iter().map(|rule| rule.name.clone());
        found.entry(message).or_default().extend(names);
    };
    if top.has("except") && policy.except.is_empty() {
        add(of_except("`except` of the document"), &[]);
    }
    for (entry, limit) in entries.iter().zip(&policy.limits) {
        if let Some(unless) = entry.tree().get("unless") {
            of_unless(unless, "unless", &mut |message| add(message, &limit.rules));
        }
        if entry.tree().get("except").is_some() && limit.except.is_empty() {
            add(of_except("`except`"), &limit.rules);
            continue;
        }
        let Some(Tree::List(nodes)) = entry.tree().get("rules") else { continue };
        for (node, rule) in nodes.iter().zip(&limit.rules) {
            if node.get("except").is_some() && rule.except.is_empty() {
                add(of_except("`except`"), std::slice::from_ref(rule));
            }
        }
    }
    found.into_iter().collect()
}

fn of_except(place: &str) -> String {
    format!("{place} is empty, so it exempts no request; write a condition, or remove it")
}

/// Adds a message about each empty mapping or list in a tree at `place`.
fn of_unless(tree: &Tree, place: &str, add: &mut dyn FnMut(String)) {
    match tree {
        Tree::Map(pairs) if !pairs.is_empty() => {
            pairs.iter().for_each(|(key, value)| of_unless(value, &format!("{place}.{key}"), add));
        }
        Tree::List(items) if !items.is_empty() => {
            items.iter().for_each(|item| of_unless(item, place, add));
        }
        Tree::Map(_) | Tree::List(_) => add(format!(
            "`{place}` is empty: a block with no other condition excludes no request; write a condition, or remove it"
        )),
        _ => {}
    }
}
