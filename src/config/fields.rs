//! The values of a mapping, read according to its declaration.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;

use super::hint;
use super::mapping::{Allowed, Choices, Mapping, MappingKey, optional, words};
use super::node::Node;
use super::values;
use diana_policy::ModuleKind;
use diana_policy::tree::Tree;

/// Names, each with a number.
pub type NameIndex<'n> = BTreeMap<Cow<'n, str>, usize>;

/// A mapping of a document, with its declaration.
///
/// Debug builds panic when an undeclared key is read. Few functions are inlined, since readers call
/// many.
#[derive(Debug)]
pub struct Fields<'a> {
    mapping: &'static Mapping,
    node: Node<'a>,
    pairs: Vec<(&'a str, Node<'a>)>,
}

impl<'a> Fields<'a> {
    /// Reads a mapping, and reports unknown keys.
    pub fn read(node: &Node<'a>, allowed: &Allowed) -> Option<Fields<'a>> {
        let pairs = node.pairs(allowed)?;
        let mapping = allowed.mapping()?;
        for (key, value) in &pairs {
            if mapping.key(key).is_none() {
                value.unknown_key(key, &mapping.names());
            }
        }
        Some(Fields { mapping, node: node.clone(), pairs })
    }

    /// A mapping without keys, at the position of `node`.
    pub fn none(node: &Node<'a>, mapping: &'static Mapping) -> Fields<'a> {
        Fields { mapping, node: node.clone(), pairs: Vec::new() }
    }

    /// All keys and values, including unknown ones.
    pub fn pairs(&self) -> &[(&'a str, Node<'a>)] {
        &self.pairs
    }

    /// The keys that another table declares.
    pub fn more(&self) -> Vec<MappingKey> {
        (self.mapping.more)()
    }

    /// Returns true if the key is declared and present.
    pub fn has(&self, key: &str) -> bool {
        self.mapping.key(key).is_some() && self.pairs.iter().any(|(name, _)| *name == key)
    }

    /// The allowed values of a key.
    pub fn allowed(&self, key: &'static str) -> Allowed {
        self.declared(key).allowed
    }

    /// The value of a key.
    pub fn get(&self, key: &'static str) -> Option<&Node<'a>> {
        debug_assert!(self.mapping.key(key).is_some(), "{}.{key}", self.mapping.name);
        self.pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The value of a key. Reports a missing key that is declared as required.
    pub fn node(&self, key: &'static str) -> Option<&Node<'a>> {
        self.node_as(key, &self.allowed(key))
    }

    /// The value of a key, as [`Fields::node`]. The report names `allowed`.
    pub fn node_as(&self, key: &'static str, allowed: &dyn Display) -> Option<&Node<'a>> {
        let value = self.get(key);
        if value.is_none() && self.declared(key).is_required {
            self.missing(key, allowed);
        }
        value
    }

    /// The value of a key. Reports a missing key.
    pub fn require(&self, key: &'static str) -> Option<&Node<'a>> {
        let value = self.get(key);
        if value.is_none() {
            self.missing(key, &self.allowed(key));
        }
        value
    }

    /// Reports a missing key, unless an unknown key is probably it.
    fn missing(&self, key: &'static str, allowed: &dyn Display) {
        let is_it = |name: &str| self.mapping.key(name).is_none() && hint::is_near(name, &[key]);
        if self.pairs.iter().any(|(name, _)| is_it(name)) {
            return;
        }
        self.node.missing_problem(key, format!("required, allowed: {allowed}"));
    }

    /// A boolean.
    pub fn flag(&self, key: &'static str, default: bool) -> bool {
        self.get(key).and_then(Node::boolean).unwrap_or(default)
    }

    /// A whole number, a duration in ticks, a size in bytes, or a fraction in millionths.
    pub fn number<N: TryFrom<u64>>(&self, key: &'static str) -> Option<N> {
        self.number_up_to(key, u64::MAX).and_then(|number| number.try_into().ok())
    }

    /// A whole number up to `most`.
    pub fn number_up_to(&self, key: &'static str, most: u64) -> Option<u64> {
        let allowed = match self.allowed(key).number() {
            Allowed::Whole(min, max) => Allowed::Whole(min, max.min(most)),
            other => other,
        };
        values::number(self.node_as(key, &allowed)?, &allowed)
    }

    /// Text that passes the test of its declaration.
    pub fn text(&self, key: &'static str) -> Option<&'a str> {
        self.node(key)?.fitting(&self.allowed(key))
    }

    /// The meaning of a word.
    pub fn choice<T: Copy>(&self, key: &'static str, choices: Choices<T>) -> Option<T> {
        let chosen = self.node(key)?.choice(&words(choices), &self.allowed(key))?;
        choices.get(chosen).map(|(_, meaning)| *meaning)
    }

    /// The items of a list. Empty if the key is missing.
    pub fn list(&self, key: &'static str) -> Option<Vec<Node<'a>>> {
        let Some(node) = self.node(key) else { return Some(Vec::new()) };
        node.list(&self.allowed(key))
    }

    /// The names and values of a mapping with arbitrary names.
    pub fn named(&self, key: &'static str) -> Vec<(&'a str, Node<'a>)> {
        self.node(key).and_then(|node| node.pairs(&self.allowed(key))).unwrap_or_default()
    }

    /// A mapping with declared keys.
    pub fn mapping(&self, key: &'static str) -> Option<Fields<'a>> {
        Fields::read(self.node(key)?, &self.allowed(key))
    }

    /// The only present key of `keys`. Each of them is a source of a number. Reports any other
    /// count.
    pub fn only_one_of(&self, keys: &[&'static str]) -> Option<(&'static str, &Node<'a>)> {
        let found: Vec<_> = keys.iter().filter_map(|key| Some((*key, self.get(key)?))).collect();
        if let [place] = found.as_slice() {
            return Some(*place);
        }
        let (count, keys) = (found.len(), keys.join(", "));
        self.node.problem(format!("found {count} sources, allowed: exactly one of {keys}"));
        None
    }

    /// Reports a problem of a key, present or not.
    pub fn report(&self, key: &'static str, message: String) {
        match self.get(key) {
            Some(value) => value.problem(message),
            None => self.node.missing_problem(key, message),
        }
    }

    /// The form of the module that reads the document.
    pub fn module(&self) -> ModuleKind {
        self.node.module()
    }

    fn declared(&self, key: &'static str) -> MappingKey {
        self.mapping.key(key).unwrap_or(optional(key, Allowed::Any))
    }
}

/// Reports duplicate keys of a mapping. YAML readers keep one of them silently.
pub fn find_duplicates(node: &Node<'_>) {
    if let Tree::Map(pairs) = node.tree() {
        let mut keys = NameIndex::new();
        for (position, (key, _)) in pairs.iter().enumerate() {
            if keys.insert(Cow::Borrowed(key.as_str()), position).is_some() {
                node.child(position).key_problem("duplicate key".into());
            }
        }
    }
    node.children().iter().for_each(find_duplicates);
}
