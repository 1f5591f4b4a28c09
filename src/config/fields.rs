//! The keys of mappings: which are known, and which come twice.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::node::{Node, roots};
use super::report::Report;
use diana_core::tree::Tree;

/// Names, each with a number. The parser of YAML has such a map, too; one of another type would take 6 KB of the module.
pub type Names<'n> = BTreeMap<Cow<'n, str>, usize>;

/// The known keys of a mapping that are present.
#[derive(Debug)]
pub struct Fields<'a> {
    node: Node<'a>,
    pairs: Vec<(&'a str, Node<'a>)>,
}

impl<'a> Fields<'a> {
    /// Reads a mapping with the keys `known`, and reports all others.
    pub fn read(node: &Node<'a>, what: &str, known: &[&'static str]) -> Option<Fields<'a>> {
        let pairs = node.pairs(what)?;
        for (key, value) in &pairs {
            if !known.contains(key) {
                value.unknown_key(key, known);
            }
        }
        Some(Fields { node: node.clone(), pairs })
    }

    /// No keys at all, at the place of `node`.
    pub fn none(node: &Node<'a>) -> Fields<'a> {
        Fields { node: node.clone(), pairs: Vec::new() }
    }

    /// The value of a key. Not inlined, here and below, since readers ask for many.
    #[inline(never)]
    pub fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The value of a key that must be there.
    #[inline(never)]
    pub fn require(&self, key: &'static str, allowed: &str) -> Option<&Node<'a>> {
        let value = self.get(key);
        if value.is_none() {
            self.node.missing_problem(key, format!("required, allowed: {allowed}"));
        }
        value
    }

    /// A switch.
    pub fn flag(&self, key: &str, default: bool) -> bool {
        self.get(key).and_then(Node::boolean).unwrap_or(default)
    }

    /// Reports a problem of a key, whether it is there or not.
    pub fn blame(&self, key: &'static str, message: String) {
        match self.get(key) {
            Some(value) => value.problem(message),
            None => self.node.missing_problem(key, message),
        }
    }
}

/// Reports every key that a mapping holds more than once; YAML readers keep one of them in silence.
pub fn find_duplicates(report: &Report<'_>) {
    for root in roots(report) {
        duplicates_in(&root);
    }
}

fn duplicates_in(node: &Node<'_>) {
    if let Tree::Map(pairs) = node.tree() {
        let mut keys = Names::new();
        for (position, (key, _)) in pairs.iter().enumerate() {
            if keys.insert(Cow::Borrowed(key.as_str()), position).is_some() {
                node.child(position).key_problem("duplicate key".into());
            }
        }
    }
    for child in node.children() {
        duplicates_in(&child);
    }
}
