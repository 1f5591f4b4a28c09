//! The entries of `limits` that cover a path, the shortest prefix first.

pub mod condition;
pub mod matcher;
mod path_tree;
mod piece;
mod reading;
mod value;

use diana_policy::Prefix;
use diana_policy::path::Path;
use path_tree::PathTree;

/// Finds entries by path with one look-up per leading segment, for any number of entries.
#[derive(Debug)]
pub struct PathIndex {
    /// Entries in the order of evaluation, once for each of their prefixes. The trees refer to
    /// positions in this list.
    order: Vec<usize>,
    exact: PathTree,
    /// Prefixes that ignore case.
    folded: PathTree,
    /// Whether any prefix has wildcards. Then several prefixes of one entry may cover a path.
    has_patterns: bool,
}

impl PathIndex {
    /// An index of entries by their prefixes. No prefix of an entry may cover another prefix of the
    /// same entry, unless one of them has wildcards. Entries are identified by their position.
    pub fn new<'a>(entries: impl Iterator<Item = &'a [Prefix]>) -> PathIndex {
        let mut sorted: Vec<(usize, &Prefix)> = Vec::new();
        let numbered = entries.enumerate();
        for (entry, prefix) in numbered.flat_map(|(at, all)| all.iter().map(move |one| (at, one))) {
            let length = prefix.path().len();
            let position = sorted.partition_point(|(_, other)| other.path().len() <= length);
            sorted.insert(position, (entry, prefix));
        }
        let (mut exact, mut folded) = (PathTree::new(false), PathTree::new(true));
        for (position, (_, prefix)) in sorted.iter().enumerate() {
            let tree = if prefix.ignores_case() { &mut folded } else { &mut exact };
            tree.insert(prefix, position);
        }
        let has_patterns = sorted.iter().any(|(_, prefix)| prefix.is_pattern());
        let order = sorted.iter().map(|(entry, _)| *entry).collect();
        PathIndex { order, exact, folded, has_patterns }
    }

    /// Returns true if there is any prefix except `/`, so that the path matters.
    #[must_use]
    pub fn needs_path(&self) -> bool {
        self.exact.len() + self.folded.len() > 2
    }

    /// Writes the entries that cover a reading of `path` to `hits`, each once: the shortest prefix
    /// first, those of equal length in document order. A path with too many readings to follow is
    /// covered by all entries.
    pub fn covering(&self, path: Path<'_>, hits: &mut Vec<usize>) {
        hits.clear();
        let is_plain = path.is_plain || !self.needs_path();
        if is_plain {
            self.exact.walk(path.text, |entry| hits.push(entry));
            if self.has_patterns {
                hits.sort_unstable();
            }
            self.folded.walk(path.text, |entry| add(hits, entry));
        } else if !(add_covering(&self.exact, path.text, hits)
            && add_covering(&self.folded, path.text, hits))
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
fn add_covering(tree: &PathTree, path: &[u8], hits: &mut Vec<usize>) -> bool {
    if tree.len() == 1 {
        tree.walk(path, |entry| add(hits, entry));
        return true;
    }
    let Some(covered) = reading::covering(tree, path) else { return false };
    let covering = covered.iter().enumerate().filter(|(_, covered)| **covered);
    covering.for_each(|(node, _)| tree.entries(node).iter().for_each(|&entry| add(hits, entry)));
    true
}

/// Inserts an entry at its sorted position, unless it is present.
fn add(hits: &mut Vec<usize>, entry: usize) {
    if let Err(position) = hits.binary_search(&entry) {
        hits.insert(position, entry);
    }
}
