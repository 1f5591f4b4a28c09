//! Collects the problems of the documents.

use std::cell::{Cell, RefCell};

use super::hint::Place;
use super::node_path::{ConfigSource, NodePart, NodePath};
use super::problem::{Problem, Problems, SHOWN};
use diana_policy::ModuleKind;
use diana_policy::tree::Tree;

/// Maximum number of stored problems. Further ones are counted, to save time and memory.
const MOST_PROBLEMS: usize = 200;

const MERGE_KEYS: &str = "merge keys of YAML are not supported; write the keys of the other mapping here. An alias such as `*name` may \
                          stand for a whole value";

/// The documents and their problems.
#[derive(Debug)]
pub struct ProblemReport<'a> {
    source: &'a ConfigSource,
    /// Where known keys belong.
    pub places: &'static [Place],
    /// The form of the module that reads them.
    pub module: ModuleKind,
    /// In the order of the text.
    found: RefCell<Vec<(NodePath, String)>>,
    more: Cell<usize>,
}

impl<'a> ProblemReport<'a> {
    /// A report without problems.
    pub fn new(
        source: &'a ConfigSource,
        module: ModuleKind,
        places: &'static [Place],
    ) -> ProblemReport<'a> {
        ProblemReport { source, places, module, found: RefCell::default(), more: Cell::new(0) }
    }

    /// The documents.
    pub fn documents(&self) -> &'a [Tree] {
        &self.source.documents
    }

    /// Returns true if there are no problems.
    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// Returns true if most further problems are only counted, so that their messages do not
    /// matter.
    pub fn is_full(&self) -> bool {
        self.found.borrow().len() >= MOST_PROBLEMS
    }

    /// Adds a problem.
    pub fn add(&self, path: NodePath, message: String) {
        let mut found = self.found.borrow_mut();
        let is_known = |(other, text): &(NodePath, String)| *other == path && *text == message;
        // Several rules may report the same problem of a shared part.
        if found.iter().any(is_known) {
            return;
        }
        let after = found.partition_point(|(earlier, _)| *earlier <= path);
        found.insert(after, (path, message));
        if found.len() > MOST_PROBLEMS {
            found.truncate(MOST_PROBLEMS);
            self.more.set(self.more.get() + 1);
        }
    }

    /// The problems with their lines and columns.
    pub fn into_problems(self) -> Problems {
        let mut found = self.found.into_inner();
        // Keys that would be merged are missing, so all other problems may be consequences.
        let mut merged: Vec<NodePath> =
            found.iter().filter_map(|(path, _)| path.merge_key(&self.source.documents)).collect();
        merged.dedup();
        if !merged.is_empty() {
            found = merged.into_iter().map(|path| (path, MERGE_KEYS.into())).collect();
            self.more.set(0);
        }
        let hidden = self.more.get() + found.len().saturating_sub(SHOWN);
        found.truncate(SHOWN);
        let problem = |(path, message): (NodePath, String)| {
            let (position, end) = self.source.span(&path).unzip();
            let id = match path.part {
                NodePart::Key => "invalid-key",
                NodePart::Value => "invalid-value",
                NodePart::Missing(_) => "missing-key",
            };
            Problem { id, position, end, path: path.path(&self.source.documents), message }
        };
        Problems::new(found.into_iter().map(problem).collect(), hidden)
    }
}
