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
    exact: PathTree,
    /// Prefixes that ignore case.
    folded: PathTree,
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
        let (mut exact, mut folded) = (PathTree::new(false), PathTree::new(true));
        for (position, (_, prefix)) in sorted.iter().enumerate() {
            let tree = if prefix.ignores_case() { &mut folded } else { &mut exact };
            tree.insert(prefix, position);
        }
        let required = |position: usize| {
            let (entry, _) = sorted.get(position)?;
            by_route::required(entries.get(*entry)?.1)
        };
        // Both are grouped.
        let has_routes = exact.group(&required) | folded.group(&required);
        let has_patterns = sorted.iter().any(|(_, prefix)| prefix.is_pattern());
        let order = sorted.iter().map(|(entry, _)| *entry).collect();
        PathIndex { order, exact, folded, has_patterns, has_routes }
    }

    /// Returns true if there is any prefix except `/`, so that the path matters.
    #[must_use]
    pub fn needs_path(&self) -> bool {
        self.exact.len() + self.folded.len() > 2
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
        hits.clear();
        let is_plain = path.is_plain || !self.needs_path();
        if is_plain {
            let is_ascending = !self.has_patterns && !self.has_routes;
            self.exact.walk(path.text, request, |entry| match is_ascending {
                true => hits.push(entry),
                false => add(hits, entry),
            });
            self.folded.walk(path.text, request, |entry| add(hits, entry));
        } else if !(add_covering(&self.exact, path.text, request, hits)
            && add_covering(&self.folded, path.text, request, hits))
        {
            hits.clear();
            hits.extend(0..self.order.len());
        }
        for hit in hits.iter_mut() {
            *hit = self.order.get(*hit).copied().unwrap_or_default();
        }
        if !is_plain || self.has_patterns {
            self.remove_repeats(hits);
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
fn add(hits: &mut Vec<usize>, entry: usize) {
    if let Err(position) = hits.binary_search(&entry) {
        hits.insert(position, entry);
    }
}
