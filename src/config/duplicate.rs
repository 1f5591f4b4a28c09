//! Keys that a mapping holds more than once. YAML readers keep one of them in silence.

use std::collections::BTreeMap;

use super::node::{Node, roots};
use super::report::Report;
use crate::tree::Tree;

/// Reports every duplicate key of every document.
pub fn find(report: &Report<'_>) {
    for root in roots(report) {
        visit(&root);
    }
}

fn visit(node: &Node<'_>) {
    if let Tree::Map(pairs) = node.tree() {
        let mut keys = BTreeMap::new();
        for (position, (key, _)) in pairs.iter().enumerate() {
            if keys.insert(key.clone(), position).is_some() {
                node.child(position).key_problem("duplicate key".into());
            }
        }
    }
    for child in node.children() {
        visit(&child);
    }
}
