//! Configured paths by their segments.

use std::cmp::Ordering;

use crate::spelling::decoded;

/// Paths as a tree of names; a node is known by its number, a parent's is lower than its children's.
#[derive(Debug)]
pub struct PathTree {
    nodes: Vec<Node>,
    /// Whether names are in lower case, and those of requests are taken as if they were.
    folds: bool,
}

#[derive(Debug, Default)]
struct Node {
    parent: usize,
    /// Sorted by name.
    children: Vec<(Box<[u8]>, usize)>,
    /// What ends here, in ascending order.
    entries: Vec<usize>,
}

impl PathTree {
    /// The node of `/`.
    pub const ROOT: usize = 0;

    /// A tree that has no path but `/`.
    pub fn new(folds: bool) -> PathTree {
        PathTree { nodes: vec![Node::default()], folds }
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Adds an entry, higher than those before, at a path in normal form.
    pub fn insert(&mut self, path: &[u8], entry: usize) {
        let mut at = PathTree::ROOT;
        for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            at = self.grow(at, name);
        }
        self.nodes.get_mut(at).into_iter().for_each(|node| node.entries.push(entry));
    }

    fn grow(&mut self, parent: usize, name: &[u8]) -> usize {
        let new = self.nodes.len();
        let Some(node) = self.nodes.get_mut(parent) else { return parent };
        match node.children.binary_search_by(|(known, _)| (**known).cmp(name)) {
            Ok(place) => node.children.get(place).map_or(parent, |(_, child)| *child),
            Err(place) => {
                node.children.insert(place, (name.into(), new));
                self.nodes.push(Node { parent, ..Node::default() });
                new
            }
        }
    }

    /// The node below `at` by a name as a request spells it, percent-encoded perhaps.
    pub fn child(&self, at: usize, spelled: &[u8]) -> Option<usize> {
        let children = &self.nodes.get(at)?.children;
        let place = children.binary_search_by(|(known, _)| self.compare(known, spelled)).ok()?;
        children.get(place).map(|(_, child)| *child)
    }

    fn compare(&self, known: &[u8], spelled: &[u8]) -> Ordering {
        match (self.folds, spelled.contains(&b'%')) {
            (false, false) => known.cmp(spelled),
            (false, true) => known.iter().copied().cmp(decoded(spelled)),
            (true, _) => {
                known.iter().copied().cmp(decoded(spelled).map(|byte| byte.to_ascii_lowercase()))
            }
        }
    }

    /// The node above, which for `/` is `/`.
    pub fn parent(&self, at: usize) -> usize {
        self.nodes.get(at).map_or(PathTree::ROOT, |node| node.parent)
    }

    /// What ends at a node.
    pub fn entries(&self, at: usize) -> &[usize] {
        self.nodes.get(at).map_or(&[], |node| &node.entries)
    }
}
