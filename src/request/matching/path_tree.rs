//! A tree of configured paths by their segments.

use std::cmp::Ordering;

use super::by_route::{ByRoute, MANY};
use diana_policy::path::Segment;
use diana_policy::port::Request;
use diana_policy::spelling::decoded;
use diana_policy::{Prefix, RouteNames};

/// Paths as a tree of names. A node is identified by its number. A parent's number is lower than
/// those of its children.
pub struct PathTree {
    nodes: Vec<PathNode>,
    /// Whether the tree ignores case. Its names are then in lower case, and those of requests are
    /// converted.
    folds: bool,
}

#[derive(Default)]
struct PathNode {
    parent: usize,
    /// Sorted by name, shorter ones first.
    children: Vec<(Box<[u8]>, usize)>,
    /// The child of every name that is not empty.
    any: Option<usize>,
    /// The entries at this path, in ascending order.
    entries: Vec<usize>,
    /// Further ones, if many require routes.
    by_route: Option<Box<ByRoute>>,
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

    /// Adds an entry at a path of the configuration. Entries are added in ascending order.
    pub fn insert(&mut self, path: &Prefix, entry: usize) {
        let mut at = PathTree::ROOT;
        for segment in path.segments() {
            at = self.grow(at, segment);
        }
        self.nodes.get_mut(at).into_iter().for_each(|node| node.entries.push(entry));
    }

    /// Groups entries by the routes that they require, where many at a path require some. Returns true
    /// if it has grouped any.
    pub fn group<'a>(&mut self, required: &dyn Fn(usize) -> Option<Vec<&'a RouteNames>>) -> bool {
        let mut has_groups = false;
        for node in &mut self.nodes {
            let routes = node.entries.iter().map(|&entry| Some((entry, required(entry)?)));
            let found: Vec<(usize, Vec<&RouteNames>)> = routes.flatten().collect();
            if found.len() < MANY {
                continue;
            }
            let is_grouped = |entry: &usize| found.binary_search_by_key(entry, |it| it.0).is_ok();
            node.entries.retain(|entry| !is_grouped(entry));
            let mut by_route = Box::<ByRoute>::default();
            found.iter().for_each(|(entry, routes)| by_route.insert(routes, *entry));
            node.by_route = Some(by_route);
            has_groups = true;
        }
        has_groups
    }

    /// The child of `parent` for a name, or for a wildcard.
    fn grow(&mut self, parent: usize, segment: Segment<'_>) -> usize {
        let new = self.nodes.len();
        let Some(node) = self.nodes.get_mut(parent) else { return parent };
        let Segment::Name(name) = segment else {
            let child = *node.any.get_or_insert(new);
            if child == new {
                self.nodes.push(PathNode { parent, ..PathNode::default() });
            }
            return child;
        };
        match node.children.binary_search_by(|(known, _)| order(known, name)) {
            Ok(position) => node.children.get(position).map_or(parent, |(_, child)| *child),
            Err(position) => {
                node.children.insert(position, (name.into(), new));
                self.nodes.push(PathNode { parent, ..PathNode::default() });
                new
            }
        }
    }

    /// The child of `at` for every name that is not empty.
    #[inline]
    pub fn any(&self, at: usize) -> Option<usize> {
        self.nodes.get(at)?.any
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

    /// Calls `take` with the entries of all nodes along a path in plain spelling. The order is
    /// ascending, unless the tree has wildcards or groups.
    pub fn walk(&self, path: &[u8], request: Option<&dyn Request>, mut take: impl FnMut(usize)) {
        // The nodes behind wildcards, and the rest of the path there. Each node has one parent, so
        // this ends after as many steps as there are nodes.
        let mut others = Vec::new();
        let mut next = Some((PathTree::ROOT, path));
        while let Some((at, rest)) = next.or_else(|| others.pop()) {
            let Some(node) = self.nodes.get(at) else { return };
            next = None;
            node.each(request, &mut take);
            if node.children.is_empty() && node.any.is_none() {
                continue;
            }
            let Some((_, names)) = rest.split_first() else { continue };
            let end = names.iter().position(|&byte| byte == b'/').unwrap_or(names.len());
            let (name, after) = names.split_at_checked(end).unwrap_or_default();
            next = self.named(node, name).map(|child| (child, after));
            let Some(any) = node.any.filter(|_| !name.is_empty()) else { continue };
            match next {
                // Most nodes lead to one child, which takes no memory.
                None => next = Some((any, after)),
                Some(_) => others.push((any, after)),
            }
        }
    }

    /// The parent of a node. `/` is its own parent.
    pub fn parent(&self, at: usize) -> usize {
        self.nodes.get(at).map_or(PathTree::ROOT, |node| node.parent)
    }

    /// Calls `take` with the entries at the path of a node: of those that are grouped, with the ones
    /// for the route of the request, or with all without a request.
    pub fn each(&self, at: usize, request: Option<&dyn Request>, take: &mut impl FnMut(usize)) {
        self.nodes.get(at).iter().for_each(|node| node.each(request, take));
    }
}

impl PathNode {
    #[inline(always)]
    fn each(&self, request: Option<&dyn Request>, take: &mut impl FnMut(usize)) {
        self.entries.iter().for_each(|entry| take(*entry));
        if let Some(by_route) = &self.by_route {
            by_route.each(request, take);
        }
    }
}

/// The order of names in a node. Comparing lengths first decides most comparisons.
#[inline]
fn order(one: &[u8], other: &[u8]) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}
