//! A node of a document that reports its problems.

use std::fmt::Display;

use super::hint;
use super::mapping::Allowed;
use super::node_path::{NodePart, NodePath};
use super::report::ProblemReport;
use diana_policy::ModuleKind;
use diana_policy::tree::Tree;

/// A node, its position, and the report for its problems.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    tree: &'a Tree,
    steps: Vec<usize>,
    report: &'a ProblemReport<'a>,
}

/// The root of every document.
pub fn roots<'a>(report: &'a ProblemReport<'a>) -> Vec<Node<'a>> {
    let root = |(number, tree)| Node { tree, steps: vec![number], report };
    report.documents().iter().enumerate().map(root).collect()
}

impl<'a> Node<'a> {
    /// The plain tree.
    pub fn tree(&self) -> &'a Tree {
        self.tree
    }

    /// The child at `position`. The node itself if there is none.
    pub fn child(&self, position: usize) -> Node<'a> {
        let child = match self.tree {
            Tree::List(items) => items.get(position),
            Tree::Map(pairs) => pairs.get(position).map(|(_, value)| value),
            _ => None,
        };
        child.map_or_else(|| self.clone(), |tree| self.at(position, tree))
    }

    /// All children.
    pub fn children(&self) -> Vec<Node<'a>> {
        let count = match self.tree {
            Tree::List(items) => items.len(),
            Tree::Map(pairs) => pairs.len(),
            _ => 0,
        };
        (0..count).map(|position| self.child(position)).collect()
    }

    /// The value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<Node<'a>> {
        let Tree::Map(pairs) = self.tree else { return None };
        let position = pairs.iter().position(|(name, _)| name == key)?;
        Some(self.child(position))
    }

    /// The node below this one at `path`, keys separated by dots. The last existing node if the
    /// path continues.
    pub fn descend(&self, path: &str) -> Node<'a> {
        path.split('.').fold(self.clone(), |node, key| node.get(key).unwrap_or(node))
    }

    fn at(&self, position: usize, tree: &'a Tree) -> Node<'a> {
        let mut steps = Vec::with_capacity(self.steps.len() + 1);
        steps.extend_from_slice(&self.steps);
        steps.push(position);
        Node { tree, steps, report: self.report }
    }

    /// Reports a problem of this node.
    pub fn problem(&self, message: String) {
        self.add(NodePart::Value, message);
    }

    /// Reports a problem of this node's key.
    pub fn key_problem(&self, message: String) {
        self.add(NodePart::Key, message);
    }

    /// Reports a problem of a missing key of this mapping.
    pub fn missing_problem(&self, key: &'static str, message: String) {
        self.add(NodePart::Missing(key), message);
    }

    /// Reports a problem of this node's key in the native module.
    pub fn native_problem(&self, message: &str) {
        if self.module() == ModuleKind::Native {
            self.key_problem(message.into());
        }
    }

    /// The form of the module that reads the document.
    pub fn module(&self) -> ModuleKind {
        self.report.module
    }

    /// Reports an unknown key, with a hint about the right place.
    pub fn unknown_key(&self, key: &str, known: &[&str]) {
        let hint = if self.report.is_full() {
            String::new()
        } else {
            hint::of_key(key, known, self.report.places)
        };
        self.key_problem(hint::message("unknown key", &hint, &known.join(", ")));
    }

    fn add(&self, part: NodePart, message: String) {
        self.report.add(NodePath { steps: self.steps.clone(), part }, message);
    }

    /// Reports an unexpected value.
    pub fn reject(&self, allowed: impl Display) {
        self.reject_with("", &allowed);
    }

    /// Reports an unexpected value, with a hint or an empty text.
    pub fn reject_with(&self, hint: &str, allowed: &dyn Display) {
        self.problem(hint::message(&format!("found {}", self.tree.found()), hint, allowed));
    }

    /// Text.
    pub fn text(&self, allowed: &dyn Display) -> Option<&'a str> {
        let text = self.tree.text();
        if text.is_none() {
            self.reject(allowed);
        }
        text
    }

    /// Text that passes the test of `allowed`. If a number or boolean would pass it as text, the
    /// report suggests quotes.
    pub fn fitting(&self, allowed: &Allowed) -> Option<&'a str> {
        let bare = match self.tree {
            Tree::Text(text) if allowed.takes(text) => return Some(text),
            Tree::Bool(value) => value.to_string(),
            Tree::Int(value) => value.to_string(),
            Tree::Number(text) => text.clone(),
            _ => String::new(),
        };
        let hint = "put it in quotes to make it text";
        let hint = if !bare.is_empty() && allowed.takes(&bare) { hint } else { "" };
        self.reject_with(hint, allowed);
        None
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Option<bool> {
        match self.tree {
            Tree::Bool(value) => return Some(*value),
            Tree::Text(text) if text == "true" || text == "false" => {
                self.problem(format!("found the text `{text}`, allowed: {text}, without quotes"));
            }
            _ => self.reject("true or false"),
        }
        None
    }

    /// The position of this name among `names`.
    pub fn choice(&self, names: &[&str], allowed: &dyn Display) -> Option<usize> {
        let text = self.text(allowed)?;
        let chosen = names.iter().position(|name| *name == text);
        if chosen.is_none() {
            self.unknown_name(text, names, allowed);
        }
        chosen
    }

    /// Reports a name that is not in `names`.
    pub fn unknown_name(&self, name: &str, names: &[&str], allowed: &dyn Display) {
        let hint =
            if self.report.is_full() { String::new() } else { hint::did_you_mean(name, names) };
        self.reject_with(&hint, allowed);
    }

    /// The items of a list.
    pub fn list(&self, allowed: &dyn Display) -> Option<Vec<Node<'a>>> {
        match self.tree {
            Tree::List(_) => Some(self.children()),
            _ => {
                self.reject(allowed);
                None
            }
        }
    }

    /// The keys and values of a mapping with arbitrary keys.
    pub fn pairs(&self, allowed: &dyn Display) -> Option<Vec<(&'a str, Node<'a>)>> {
        match self.tree {
            Tree::Map(pairs) => {
                Some(pairs.iter().map(|(key, _)| key.as_str()).zip(self.children()).collect())
            }
            Tree::Text(text) => {
                self.reject_with(&hint::missing_space(text, self.report.places), allowed);
                None
            }
            _ => {
                self.reject(allowed);
                None
            }
        }
    }
}
