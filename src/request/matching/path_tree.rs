//! A tree of configured paths by their segments.

use std::cmp::Ordering;

use diana_policy::spelling::decoded;

/// Paths as a tree of names. A node is identified by its number. A parent's number is lower than
/// those of its children.
#[derive(Debug)]
pub struct PathTree {
    nodes: Vec<PathNode>,
    /// Whether the tree ignores case. Its names are then in lower case, and those of requests are
    /// converted.
    folds: bool,
}

#[derive(Debug, Default)]
struct PathNode {
    parent: usize,
    /// Sorted by name, shorter ones first.
    children: Vec<(Box<[u8]>, usize)>,
    /// The entries at this path, in ascending order.
    entries: Vec<usize>,
}

impl PathTree {
    /// The node of `/`.
    pub const ROOT: usize = 0;

    /// A tree with the path `/` only.
    pub fn new(folds: bool) -> PathTree {
        PathTree { nodes: vec![PathNode::default()], folds }
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Adds an entry at a path in normal form. Entries are added in ascending order.
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
        match node.children.binary_search_by(|(known, _)| order(known, name)) {
            Ok(position) => node.children.get(position).map_or(parent, |(_, child)| *child),
            Err(position) => {
                node.children.insert(position, (name.into(), new));
                self.nodes.push(PathNode { parent, ..PathNode::default() });
                new
            }
        }
    }

    /// The child of `at` with a name as the request spells it, possibly percent-encoded.
    pub fn child(&self, at: usize, spelled: &[u8]) -> Option<usize> {
        let node = self.nodes.get(at)?;
        if !spelled.contains(&b'%') {
            return self.named(node, spelled);
        }
        let name: Vec<u8> = decoded(spelled).collect();
        self.named(node, &name)
    }

    /// The child with this decoded name.
    #[inline]
    fn named(&self, node: &PathNode, name: &[u8]) -> Option<usize> {
        let lower = |byte: &u8| if self.folds { byte.to_ascii_lowercase() } else { *byte };
        // Most names differ in length, so few are compared byte by byte.
        let compare = |known: &[u8]| {
            let by_length = known.len().cmp(&name.len());
            by_length.then_with(|| known.iter().copied().cmp(name.iter().map(lower)))
        };
        let position = node.children.binary_search_by(|(known, _)| compare(known));
        node.children.get(position.ok()?).map(|(_, child)| *child)
    }

    /// Calls `take` with the entries of all nodes along a path in plain spelling.
    pub fn walk(&self, path: &[u8], mut take: impl FnMut(usize)) {
        let (mut at, mut rest) = (PathTree::ROOT, path);
        while let Some(node) = self.nodes.get(at) {
            for &entry in &node.entries {
                take(entry);
            }
            if node.children.is_empty() {
                return;
            }
            let Some((_, names)) = rest.split_first() else { return };
            let end = names.iter().position(|&byte| byte == b'/').unwrap_or(names.len());
            let (name, after) = names.split_at_checked(end).unwrap_or_default();
            match self.named(node, name) {
                Some(child) => (at, rest) = (child, after),
                None => return,
            }
        }
    }

    /// The parent of a node. `/` is its own parent.
    pub fn parent(&self, at: usize) -> usize {
        self.nodes.get(at).map_or(PathTree::ROOT, |node| node.parent)
    }

    /// The entries at the path of a node.
    pub fn entries(&self, at: usize) -> &[usize] {
        self.nodes.get(at).map_or(&[], |node| &node.entries)
    }
}

/// The order of names in a node. Comparing lengths first decides most comparisons.
#[inline]
fn order(one: &[u8], other: &[u8]) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}
