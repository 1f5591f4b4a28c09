//! `replaces`: the rules that do not apply where this one does.

use std::collections::BTreeMap;

use crate::fields::{Fields, NameIndex};
use crate::mapping::Allowed::{self, List};
use crate::node::Node;
use crate::values::TEXT;
use diana_policy::tree::Tree;

/// The names of other rules.
pub const RULES: Allowed = List("a list of names of rules such as `[general]`", &TEXT);

/// Maximum number of names in a message.
const NAMED: usize = 20;

/// A rule that replaces others, as written.
struct ReplacesDraft<'a> {
    /// The configured name of the rule. Empty if there is none.
    name: &'a str,
    /// The names of the others.
    others: Vec<(&'a str, Node<'a>)>,
}

/// Reads the names of the rules that a rule replaces. [`check`] knows whether they exist.
pub fn read(rule: &Fields<'_>) -> Vec<String> {
    let Some(node) = rule.get("replaces") else { return Vec::new() };
    let items = node.list(&RULES).unwrap_or_default();
    if *node.tree() == Tree::List(Vec::new()) {
        node.problem(format!("found an empty list, allowed: {RULES}"));
    }
    let mut others: Vec<String> = Vec::new();
    for item in items {
        let Some(other) = item.text(&"the name of a rule") else { continue };
        if others.iter().any(|known| known == other) {
            item.problem(format!("{} is already in the list", item.tree().found()));
        }
        others.push(other.into());
    }
    others
}

/// The rule of a node, if it replaces others.
fn draft<'a>(rule: &Node<'a>) -> Option<ReplacesDraft<'a>> {
    let items = rule.get("replaces")?.children().into_iter();
    let others = items.filter_map(|item| Some((item.tree().text()?, item))).collect();
    let name = rule.tree().get("name").and_then(Tree::text).unwrap_or_default();
    Some(ReplacesDraft { name, others })
}

/// Reports names that no rule has, and rules that replace each other.
pub fn check(entries: &[Node<'_>], names: &NameIndex<'_>) {
    let rules = entries.iter().filter_map(|entry| entry.get("rules"));
    let rules: Vec<Node<'_>> = rules.flat_map(|rules| rules.children()).collect();
    let drafts: Vec<ReplacesDraft<'_>> = rules.iter().filter_map(draft).collect();
    for (other, node) in drafts.iter().flat_map(|draft| &draft.others) {
        if !names.contains_key(*other) {
            let known: Vec<&str> = names.keys().map(|name| &**name).collect();
            let listed = known.get(..NAMED).unwrap_or(&known).join(", ");
            let allowed = match known.is_empty() {
                true => "no name, since no rule has a `name`".into(),
                false => format!("the `name` of another rule: {listed}"),
            };
            node.unknown_name(other, &known, &allowed);
        }
    }
    for (name, node) in circles(&drafts) {
        node.problem(format!(
            "`{name}` is replaced by this rule and replaces it in turn, so that neither would apply; remove one of the names"
        ));
    }
}

/// The names by which rules replace themselves, directly or by others in between.
fn circles<'d, 'a>(drafts: &'d [ReplacesDraft<'a>]) -> Vec<(&'a str, &'d Node<'a>)> {
    let numbers: BTreeMap<&str, usize> =
        drafts.iter().enumerate().map(|(number, draft)| (draft.name, number)).collect();
    // The drafts that a draft replaces, and those that replace it.
    let mut edges = vec![(Vec::new(), Vec::new()); drafts.len()];
    for (from, draft) in drafts.iter().enumerate().filter(|(_, draft)| !draft.name.is_empty()) {
        for to in draft.others.iter().filter_map(|(other, _)| numbers.get(other).copied()) {
            edges.get_mut(from).into_iter().for_each(|edge| edge.0.push(to));
            edges.get_mut(to).into_iter().for_each(|edge| edge.1.push(from));
        }
    }
    // A rule that no other one leads to, or that leads to no other one, is in no circle.
    let forward = left(&edges, |(to, from)| (to, from));
    let backward = left(&edges, |(to, from)| (from, to));
    let is_left = |number: usize| {
        [&forward, &backward].iter().all(|left| left.get(number).copied().unwrap_or(false))
    };
    let found = drafts.iter().enumerate().filter(|(number, _)| is_left(*number));
    let others = found.flat_map(|(_, draft)| &draft.others);
    let is_in = |(other, _): &&(&str, Node<'_>)| numbers.get(other).is_some_and(|&to| is_left(to));
    others.filter(is_in).map(|(other, node)| (*other, node)).collect()
}

type Edges = (Vec<usize>, Vec<usize>);

/// The drafts that stay if each one without `ahead` is removed, again and again.
fn left<'e>(
    edges: &'e [Edges],
    ends: impl Fn(&'e Edges) -> (&'e Vec<usize>, &'e Vec<usize>),
) -> Vec<bool> {
    let mut ahead: Vec<usize> = edges.iter().map(|edge| ends(edge).0.len()).collect();
    let mut left = vec![true; edges.len()];
    let mut removed: Vec<usize> =
        ahead.iter().enumerate().filter(|(_, count)| **count == 0).map(|(at, _)| at).collect();
    while let Some(number) = removed.pop() {
        left.get_mut(number).into_iter().for_each(|left| *left = false);
        for &behind in edges.get(number).map(|edge| ends(edge).1).into_iter().flatten() {
            let Some(count) = ahead.get_mut(behind) else { continue };
            *count -= 1;
            if *count == 0 {
                removed.push(behind);
            }
        }
    }
    left
}
