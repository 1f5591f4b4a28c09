//! A mapping whose keys are known.

use super::node::Node;

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
