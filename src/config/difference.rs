//! Values that another program reads differently from Diana.

use super::node_path::{ConfigSource, NodePart, NodePath};
use super::problem::NodeSpan;
use diana_policy::tree::Tree;

/// A key or a value that another program reads differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its span in the text.
    pub span: Option<NodeSpan>,
    /// Its place, such as `limits[0].rules[1].algo`.
    pub path: String,
    /// The reading of Diana.
    pub written: String,
    /// The reading of the other program.
    pub read: String,
}

/// The differences between two readings of one text.
#[must_use]
pub fn find(diana: &ConfigSource, other: &ConfigSource) -> Vec<Difference> {
    let mut comparison = Comparison { diana, steps: Vec::new(), found: Vec::new() };
    for (number, (tree, other)) in diana.documents.iter().zip(&other.documents).enumerate() {
        comparison.descend(number, tree, other);
    }
    comparison.found
}

/// A walk through both readings.
struct Comparison<'s> {
    diana: &'s ConfigSource,
    /// The path to the current node.
    steps: Vec<usize>,
    found: Vec<Difference>,
}

impl Comparison<'_> {
    fn descend(&mut self, step: usize, tree: &Tree, other: &Tree) {
        self.steps.push(step);
        self.compare(tree, other);
        self.steps.pop();
    }

    fn compare(&mut self, tree: &Tree, other: &Tree) {
        match (tree, other) {
            (Tree::List(items), Tree::List(others)) => {
                for (step, (item, other)) in items.iter().zip(others).enumerate() {
                    self.descend(step, item, other);
                }
            }
            (Tree::Map(pairs), Tree::Map(others)) => {
                for (step, ((key, tree), (other_key, other))) in
                    pairs.iter().zip(others).enumerate()
                {
                    if key != other_key {
                        let [key, other_key] = [key, other_key].map(|key| Tree::from(&**key));
                        self.steps.push(step);
                        self.add(NodePart::Key, &key, &other_key);
                        self.steps.pop();
                    }
                    self.descend(step, tree, other);
                }
            }
            // Another program that takes a number for text passes it on as it is written.
            (Tree::Int(_) | Tree::Number(_), Tree::Text(_)) => {}
            _ if tree != other => self.add(NodePart::Value, tree, other),
            _ => {}
        }
    }

    fn add(&mut self, part: NodePart, tree: &Tree, other: &Tree) {
        let place = NodePath { steps: self.steps.clone(), part };
        self.found.push(Difference {
            span: self.diana.span(&place),
            path: place.path(&self.diana.documents),
            written: tree.found(),
            read: other.found(),
        });
    }
}
