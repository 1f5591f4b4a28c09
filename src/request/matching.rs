//! Which entries of `limits` cover a path, the shortest first.

pub mod condition;
pub mod except;
pub mod header;
pub mod matcher;
mod path_tree;
mod piece;
mod reading;
mod value;

use diana_policy::Prefix;
use diana_policy::path::Path;
use path_tree::PathTree;

/// Finds entries by path: one look-up per leading segment, however many entries there are.
#[derive(Debug)]
pub struct PathIndex {
    /// Entries in the order in which they are judged, each once for each of its prefixes; the trees know them
    /// by their places here.
    order: Vec<usize>,
    exact: PathTree,
    /// PathIndex that ignore case.
    folded: PathTree,
}

impl PathIndex {
    /// An index of entries by their prefixes, none of which covers another of the same entry; an entry is
    /// known by its place.
    pub fn new<'a>(entries: impl Iterator<Item = &'a [Prefix]>) -> PathIndex {
        let mut sorted: Vec<(usize, &Prefix)> = Vec::new();
        let numbered = entries.enumerate();
        for (entry, prefix) in numbered.flat_map(|(at, all)| all.iter().map(move |one| (at, one))) {
            let length = prefix.path().len();
            let place = sorted.partition_point(|(_, other)| other.path().len() <= length);
            sorted.insert(place, (entry, prefix));
        }
        let (mut exact, mut folded) = (PathTree::new(false), PathTree::new(true));
        for (place, (_, prefix)) in sorted.iter().enumerate() {
            let tree = if prefix.ignores_case() { &mut folded } else { &mut exact };
            tree.insert(prefix.path(), place);
        }
        PathIndex { order: sorted.iter().map(|(entry, _)| *entry).collect(), exact, folded }
    }

    /// Whether there is any prefix but `/`, so that a request's path matters.
    #[must_use]
    pub fn needs_path(&self) -> bool {
        self.exact.len() + self.folded.len() > 2
    }

    /// Writes the entries that cover a reading of `path` to `hits`, each once: the shortest prefix
    /// first, those of one length in document order. A path with more readings than can be followed
    /// falls under all of them.
    pub fn covering(&self, path: Path<'_>, hits: &mut Vec<usize>) {
        hits.clear();
        let is_plain = path.is_plain || !self.needs_path();
        if is_plain {
            self.exact.walk(path.text, |entry| hits.push(entry));
            self.folded.walk(path.text, |entry| add(hits, entry));
        } else if !(odd(&self.exact, path.text, hits) && odd(&self.folded, path.text, hits)) {
            hits.clear();
            hits.extend(0..self.order.len());
        }
        for hit in hits.iter_mut() {
            *hit = self.order.get(*hit).copied().unwrap_or_default();
        }
        if !is_plain {
            self.keep_first(hits);
        }
    }

    /// Keeps each entry in the place of the first of its prefixes that covers a reading.
    fn keep_first(&self, hits: &mut Vec<usize>) {
        let mut seen = vec![false; self.order.len()];
        let mut is_first =
            |entry: &usize| seen.get_mut(*entry).is_some_and(|seen| !std::mem::replace(seen, true));
        hits.retain(|entry| is_first(entry));
    }
}

/// Adds the entries that cover any reading of a path; whether that could be told.
#[inline(never)]
fn odd(tree: &PathTree, path: &[u8], hits: &mut Vec<usize>) -> bool {
    if tree.len() == 1 {
        tree.walk(path, |entry| add(hits, entry));
        return true;
    }
    let Some(covered) = reading::covering(tree, path) else { return false };
    let covering = covered.iter().enumerate().filter(|(_, covered)| **covered);
    covering.for_each(|(node, _)| tree.entries(node).iter().for_each(|&entry| add(hits, entry)));
    true
}

/// Adds an entry in its place.
fn add(hits: &mut Vec<usize>, entry: usize) {
    if let Err(place) = hits.binary_search(&entry) {
        hits.insert(place, entry);
    }
}
