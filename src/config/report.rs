//! Collects the problems of the documents while they are read.

use std::cell::{Cell, RefCell};

use super::locate::locate;
use super::place::Place;
use super::problem::{Problem, Problems, SHOWN};
use crate::tree::Tree;

/// How many problems are kept: beyond them a document is not worth the time and the memory.
const KEPT: usize = 200;

/// How much text may be read again to find lines and columns: it bounds the time that a large
/// document with many problems takes.
const REREAD: usize = 1 << 20;

/// The documents, and what is wrong with them.
#[derive(Debug)]
pub struct Report<'a> {
    documents: &'a [Tree],
    /// In the order of the text.
    found: RefCell<Vec<(Place, String)>>,
    more: Cell<usize>,
}

impl<'a> Report<'a> {
    /// A report without problems.
    pub fn new(documents: &'a [Tree]) -> Report<'a> {
        Report { documents, found: RefCell::default(), more: Cell::new(0) }
    }

    /// The documents.
    pub fn documents(&self) -> &'a [Tree] {
        self.documents
    }

    /// Whether nothing is wrong so far.
    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// Whether most further problems are only counted, so that their messages need no care.
    pub fn is_full(&self) -> bool {
        self.found.borrow().len() >= KEPT
    }

    /// Adds a problem.
    pub fn add(&self, place: Place, message: String) {
        let mut found = self.found.borrow_mut();
        let after = found.partition_point(|(earlier, _)| *earlier <= place);
        found.insert(after, (place, message));
        if found.len() > KEPT {
            found.truncate(KEPT);
            self.more.set(self.more.get() + 1);
        }
    }

    /// The problems with their lines and columns.
    pub fn into_problems(self, text: &str) -> Problems {
        let mut found = self.found.into_inner();
        let hidden = self.more.get() + found.len().saturating_sub(SHOWN);
        found.truncate(SHOWN);
        // A message has no lines.
        let budget = REREAD.checked_div(text.len()).unwrap_or(0);
        let problem = |(index, (place, message)): (usize, (Place, String))| Problem {
            position: if index < budget { locate(text, &place) } else { None },
            path: place.path(self.documents),
            message,
        };
        Problems::new(found.into_iter().enumerate().map(problem).collect(), hidden)
    }
}
