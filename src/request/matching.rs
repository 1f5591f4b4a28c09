//! The entries of `limits` that cover a path, the shortest prefix first.

mod by_route;
pub mod condition;
pub mod matcher;
mod path_tree;
mod piece;
mod reading;
mod value;

use diana_policy::path::Path;
use diana_policy::port::Request;
use diana_policy::{Match, Prefix};
use path_tree::PathTree;

/// Finds entries by path with one look-up per leading segment, and by the routes that they require,
/// for any number of entries.
pub struct PathIndex {
    /// Entries in the order of evaluation, once for each of their prefixes. The trees refer to
    /// positions in this list.
    order: Vec<usize>,
    /// Of the prefixes that respect case, and of those that ignore it, if there are any.
    trees: Vec<PathTree>,
    /// Whether any prefix is not `/`.
    needs_path: bool,
    /// Whether any prefix has wildcards. Then several prefixes of one entry may cover a path.
    has_patterns: bool,
    /// Whether any entries are looked up by the route.
    has_routes: bool,
}

impl PathIndex {
    /// An index of entries by their prefixes and conditions. No prefix of an entry may cover another prefix of the
    /// same entry, unless one of them has wildcards. Entries are identified by their position.
    pub fn new<'a>(entries: impl Iterator<Item = (&'a [Prefix], &'a Match)>) -> PathIndex {
        let entries: Vec<(&[Prefix], &Match)> = entries.collect();
        let numbered = entries.iter().enumerate();
        let prefixes =
            numbered.flat_map(|(at, (prefixes, _))| prefixes.iter().map(move |one| (at, one)));
        let mut sorted: Vec<(usize, &Prefix)> = prefixes.collect();
        sorted.sort_by_key(|(_, prefix)| prefix.path().len());
        let required = |position: usize| {
            let (entry, _) = sorted.get(position)?;
            by_route::required(entries.get(*entry)?.1)
        };
        let (mut trees, mut has_routes) = (Vec::new(), false);
        for folds in [false, true] {
            let numbered = sorted.iter().enumerate();
            let mut own =
                numbered.filter(|(_, (_, prefix))| prefix.ignores_case() == folds).peekable();
            if own.peek().is_none() {
                continue;
            }
            let mut tree = PathTree::new(folds);
            own.for_each(|(position, (_, prefix))| tree.insert(prefix, position));
            has_routes |= tree.group(&required);
            trees.push(tree);
        }
        let has_patterns = sorted.iter().any(|(_, prefix)| prefix.is_pattern());
        let order = sorted.iter().map(|(entry, _)| *entry).collect();
        let needs_path = trees.iter().any(|tree| tree.len() > 1);
        PathIndex { order, trees, needs_path, has_patterns, has_routes }
    }

    /// Returns true if there is any prefix except `/`, so that the path matters.
    #[must_use]
    pub fn needs_path(&self) -> bool {
        self.needs_path
    }

    /// Returns true if any entries are looked up by the route of a request.
    #[must_use]
    pub fn needs_route(&self) -> bool {
        self.has_routes
    }

    /// Writes the entries that cover a reading of `path` to `hits`, each once: the shortest prefix
    /// first, those of equal length in document order. A path with too many readings to follow is
    /// covered by all entries. Of many entries that require routes, those for the route of `request`;
    /// all of them without a request.
    pub fn covering(&self, path: Path<'_>, request: Option<&dyn Request>, hits: &mut Vec<usize>) {
        if !self.needs_path {
            return self.at_root(request, hits);
        }
        hits.clear();
        if path.is_plain {
            for tree in &self.trees {
                tree.walk(path.text, request, |entry| add(hits, entry));
            }
        } else if !self.trees.iter().all(|tree| add_covering(tree, path.text, request, hits)) {
            hits.clear();
            hits.extend(0..self.order.len());
        }
        self.number(hits);
        if !path.is_plain || self.has_patterns {
            self.remove_repeats(hits);
        }
    }

    /// The same for the path `/`.
    #[inline]
    pub fn at_root(&self, request: Option<&dyn Request>, hits: &mut Vec<usize>) {
        hits.clear();
        for tree in &self.trees {
            tree.each(PathTree::ROOT, request, &mut |entry| add(hits, entry));
        }
        self.number(hits);
    }

    /// Replaces positions in the order of evaluation by entries.
    #[inline]
    fn number(&self, hits: &mut [usize]) {
        for hit in hits {
            *hit = self.order.get(*hit).copied().unwrap_or_default();
        }
    }

    /// Keeps each entry at the position of its first matching prefix.
    fn remove_repeats(&self, hits: &mut Vec<usize>) {
        let mut seen = vec![false; self.order.len()];
        let mut is_first =
            |entry: &usize| seen.get_mut(*entry).is_some_and(|seen| !std::mem::replace(seen, true));
        hits.retain(|entry| is_first(entry));
    }
}

/// Adds the entries that cover any reading of a path. Returns false if there are too many readings
/// to follow.
#[inline(never)]
fn add_covering(
    tree: &PathTree,
    path: &[u8],
    request: Option<&dyn Request>,
    hits: &mut Vec<usize>,
) -> bool {
    if tree.len() == 1 {
        tree.walk(path, request, |entry| add(hits, entry));
        return true;
    }
    let Some(covered) = reading::covering(tree, path) else { return false };
    let covering = covered.iter().enumerate().filter(|(_, covered)| **covered);
    covering.for_each(|(node, _)| tree.each(node, request, &mut |entry| add(hits, entry)));
    true
}

/// Inserts an entry at its sorted position, unless it is present.
#[inline]
fn add(hits: &mut Vec<usize>, entry: usize) {
    // Mostly they come in order.
    if hits.last().is_none_or(|last| *last < entry) {
        hits.push(entry);
    } else if let Err(position) = hits.binary_search(&entry) {
        hits.insert(position, entry);
    }
}
