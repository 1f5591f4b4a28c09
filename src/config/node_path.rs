//! The position of a node: in the documents, and in their text.

use super::problem::{NodeSpan, Position};
use diana_policy::tree::Tree;

/// A path from the root: the number of the document, then the index of the child at each level.
///
/// Places are ordered as in the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodePath {
    /// The path.
    pub steps: Vec<usize>,
    /// The part of the node.
    pub part: NodePart,
}

/// A part of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodePart {
    /// Its key.
    Key,
    /// The node itself.
    Value,
    /// A key that the mapping lacks.
    Missing(&'static str),
}

impl NodePath {
    /// The node of the first merge key on the way to this one.
    pub fn merge_key(&self, documents: &[Tree]) -> Option<NodePath> {
        let (document, steps) = self.steps.split_first()?;
        let mut tree = documents.get(*document)?;
        for (depth, step) in steps.iter().enumerate() {
            tree = match tree {
                Tree::List(items) => items.get(*step)?,
                Tree::Map(pairs) => {
                    let (key, value) = pairs.get(*step)?;
                    if key == "<<" {
                        let steps = self.steps.get(..depth + 2)?.to_vec();
                        return Some(NodePath { steps, part: NodePart::Key });
                    }
                    value
                }
                _ => return None,
            };
        }
        None
    }

    /// The place in the notation for readers, such as `limits[0].rules[1].algo`.
    pub fn path(&self, documents: &[Tree]) -> String {
        let mut path = String::new();
        let mut steps = self.steps.iter();
        let document = steps.next().copied().unwrap_or_default();
        if documents.len() > 1 {
            path = format!("document[{document}]");
        }
        let mut tree = documents.get(document);
        for &step in steps {
            tree = match tree {
                Some(Tree::List(items)) => {
                    path.push_str(&format!("[{step}]"));
                    items.get(step)
                }
                Some(Tree::Map(pairs)) => pairs.get(step).map(|(key, value)| {
                    push_key(&mut path, key);
                    value
                }),
                _ => None,
            };
        }
        if let NodePart::Missing(key) = self.part {
            push_key(&mut path, key);
        }
        path
    }
}

fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if (1..=60).contains(&key.len()) && key.bytes().all(plain) {
        path.push_str(key);
    } else {
        path.push_str(&Tree::Text(key.into()).found());
    }
}

/// The documents of a text, or a node that is treated as a document.
#[derive(Debug)]
pub struct ConfigSource {
    /// The tree of each document.
    pub(super) documents: Vec<Tree>,
    /// The spans of all nodes in order, a key before its value. Empty if there is no text.
    pub(super) spans: Vec<NodeSpan>,
}

/// A node of a source: its index in `spans`, the index of its key, and its tree.
type FoundTree<'s> = (usize, Option<usize>, &'s Tree);

impl ConfigSource {
    /// A document without a text.
    #[must_use]
    pub fn of(tree: Tree) -> ConfigSource {
        ConfigSource { documents: vec![tree], spans: Vec::new() }
    }

    /// The documents.
    #[must_use]
    pub fn documents(&self) -> &[Tree] {
        &self.documents
    }

    /// The node at a path as a separate document. The first step is the number of the document.
    #[must_use]
    pub fn part(&self, steps: &[usize]) -> Option<ConfigSource> {
        let (index, _, tree) = self.find(steps)?;
        let spans = self.spans.get(index..index + nodes(tree)).unwrap_or_default().to_vec();
        Some(ConfigSource { documents: vec![tree.clone()], spans })
    }

    /// Line and column of the node at a path.
    #[must_use]
    pub fn position_of(&self, steps: &[usize]) -> Option<Position> {
        self.span_of(steps).map(|(begin, _)| begin)
    }

    /// The span of the node at a path.
    #[must_use]
    pub fn span_of(&self, steps: &[usize]) -> Option<NodeSpan> {
        self.find(steps).and_then(|(index, _, _)| self.spans.get(index).copied())
    }

    /// The span of the node's key, if it has one.
    #[must_use]
    pub fn key_span_of(&self, steps: &[usize]) -> Option<NodeSpan> {
        self.find(steps).and_then(|(_, key, _)| self.spans.get(key?).copied())
    }

    /// The node at a path in the notation for readers.
    #[must_use]
    pub fn path_of(&self, steps: &[usize]) -> String {
        NodePath { steps: steps.to_vec(), part: NodePart::Value }.path(&self.documents)
    }

    /// The span of `path`.
    pub(super) fn span(&self, path: &NodePath) -> Option<NodeSpan> {
        let (index, key, _) = self.find(&path.steps)?;
        let at = key.filter(|_| path.part == NodePart::Key).unwrap_or(index);
        self.spans.get(at).copied()
    }

    fn find(&self, steps: &[usize]) -> Option<FoundTree<'_>> {
        let (&document, steps) = steps.split_first()?;
        let mut index: usize = self.documents.iter().take(document).map(nodes).sum();
        let mut tree = self.documents.get(document)?;
        let mut key = None;
        for &step in steps {
            index += 1;
            (tree, key) = match tree {
                Tree::List(items) => {
                    index += items.iter().take(step).map(nodes).sum::<usize>();
                    (items.get(step)?, None)
                }
                Tree::Map(pairs) => {
                    let key = index + pairs.iter().take(step).map(pair).sum::<usize>();
                    index = key + 1;
                    (&pairs.get(step)?.1, Some(key))
                }
                _ => return None,
            };
        }
        Some((index, key, tree))
    }
}

/// The number of nodes of a tree.
pub(super) fn nodes(tree: &Tree) -> usize {
    match tree {
        Tree::List(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Tree::Map(pairs) => 1 + pairs.iter().map(pair).sum::<usize>(),
        _ => 1,
    }
}

fn pair((_, value): &(String, Tree)) -> usize {
    1 + nodes(value)
}
