//! The positions of a document's rules, for tools that display them.

use super::document::is_full;
use super::hint;
use super::node_path::ConfigSource;
use diana_policy::tree::Tree;

/// The steps to each rule of a valid source, in document order. The first step is the number of the
/// document.
#[must_use]
pub fn rules(source: &ConfigSource) -> Vec<Vec<usize>> {
    let mut walks = Vec::new();
    for (number, root) in source.documents().iter().enumerate() {
        for (entry, walk) in entries(root, vec![number]) {
            for (_, walk) in items(entry, "rules", &walk) {
                walks.push(walk);
            }
        }
    }
    walks
}

/// Returns true if a tree looks like rules.
#[must_use]
pub fn looks_like_rules(tree: &Tree) -> bool {
    let has = |key: &str| tree.get(key).is_some();
    match tree {
        Tree::Map(_) => has("limits") || has("rules") && (has("Url") || has("url")),
        Tree::List(items) => items
            .first()
            .is_some_and(|first| matches!(first, Tree::Map(_)) && looks_like_rules(first)),
        _ => false,
    }
}

/// Returns true if a mapping has a key that resembles `limits` or `rules`.
#[must_use]
pub fn resembles_rules(tree: &Tree) -> bool {
    let Tree::Map(pairs) = tree else { return false };
    pairs.iter().any(|(key, _)| hint::is_near(key, &["limits", "rules"]))
}

type Walked<'t> = Vec<(&'t Tree, Vec<usize>)>;

fn entries(root: &Tree, walk: Vec<usize>) -> Walked<'_> {
    match root {
        Tree::List(items) => numbered(items, &walk),
        Tree::Map(_) if is_full(root) => items(root, "limits", &walk),
        _ => vec![(root, walk)],
    }
}

/// The items of the list under a key.
fn items<'t>(tree: &'t Tree, key: &str, walk: &[usize]) -> Walked<'t> {
    let Tree::Map(pairs) = tree else { return Vec::new() };
    let position = pairs.iter().position(|(name, _)| name == key);
    let found = position.and_then(|position| Some((position, &pairs.get(position)?.1)));
    match found {
        Some((position, Tree::List(items))) => numbered(items, &[walk, &[position]].concat()),
        _ => Vec::new(),
    }
}

fn numbered<'t>(items: &'t [Tree], walk: &[usize]) -> Walked<'t> {
    let numbered = |(number, item)| (item, [walk, &[number]].concat());
    items.iter().enumerate().map(numbered).collect()
}
