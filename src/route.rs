//! Which entries of `limits` cover a path, the shortest first.

pub mod except;
pub mod header;
pub mod host;
pub mod matcher;
pub mod path;

use path::Prefix;

/// Finds entries by path: one look-up per leading segment, however many entries there are.
#[derive(Debug, Default)]
pub struct Router {
    exact: Index,
    /// Prefixes that ignore case, in lower case.
    folded: Index,
    /// Entries that cover every path.
    root: Vec<usize>,
    /// Segments of the longest prefix.
    depth: usize,
}

/// Entries by path, sorted by path; each path's entries are in document order.
#[derive(Debug, Default)]
struct Index(Vec<(Box<[u8]>, Vec<usize>)>);

impl Index {
    fn insert(&mut self, path: &[u8], entry: usize) {
        match self.0.binary_search_by(|(known, _)| (**known).cmp(path)) {
            Ok(place) => self.0.get_mut(place).into_iter().for_each(|(_, list)| list.push(entry)),
            Err(place) => self.0.insert(place, (path.into(), vec![entry])),
        }
    }

    fn get(&self, path: &[u8]) -> &[usize] {
        let found = self.0.binary_search_by(|(known, _)| (**known).cmp(path)).ok();
        found.and_then(|place| self.0.get(place)).map_or(&[], |(_, entries)| entries)
    }
}

impl Router {
    /// A router over prefixes; an entry is known by its place among them.
    pub fn new<'a>(prefixes: impl Iterator<Item = &'a Prefix>) -> Router {
        let mut router = Router::default();
        for (entry, prefix) in prefixes.enumerate() {
            let index = if prefix.ignores_case() { &mut router.folded } else { &mut router.exact };
            index.insert(prefix.path(), entry);
            router.depth = router.depth.max(segments(prefix.path()));
            if segments(prefix.path()) == 0 {
                router.root.push(entry);
            }
        }
        router
    }

    /// Whether there is any prefix but `/`, so that a request's path matters.
    #[must_use]
    pub fn needs_path(&self) -> bool {
        self.depth > 0
    }

    /// Adds the entries that cover `path`, which is in normal form, to `hits`: the shortest prefix
    /// first, equal prefixes in document order. `lower` is scratch space.
    pub fn covering(&self, path: &[u8], lower: &mut Vec<u8>, hits: &mut Vec<usize>) {
        hits.extend_from_slice(&self.root);
        if self.depth == 0 || path.len() <= 1 {
            return;
        }
        lower.clear();
        if !self.folded.0.is_empty() {
            lower.extend(path.iter().map(u8::to_ascii_lowercase));
        }
        let slashes = path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/');
        let ends = slashes.map(|(end, _)| end).chain([path.len()]);
        for end in ends.take(self.depth) {
            let exact = path.get(..end).unwrap_or_default();
            self.at(exact, lower.get(..end).unwrap_or_default(), hits);
        }
    }

    fn at(&self, exact: &[u8], folded: &[u8], hits: &mut Vec<usize>) {
        let start = hits.len();
        hits.extend(self.exact.get(exact));
        for &entry in self.folded.get(folded) {
            let added = hits.get(start..).unwrap_or_default();
            let place = start + added.partition_point(|&other| other < entry);
            hits.insert(place, entry);
        }
    }
}

fn segments(path: &[u8]) -> usize {
    if path.len() <= 1 { 0 } else { path.iter().filter(|&&byte| byte == b'/').count() }
}
