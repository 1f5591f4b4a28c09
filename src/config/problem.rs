//! Problems of a document, with messages that a first-time reader can act on.

use std::error::Error;
use std::fmt;

/// Maximum number of displayed problems. The others are counted.
pub(super) const SHOWN: usize = 50;

/// Line and column of a text, counted from 1.
pub type Position = (usize, usize);

/// The begin and the end of a node: the position after its last character.
pub type NodeSpan = (Position, Position);

/// One mistake in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The kind of the mistake, for programs.
    pub id: &'static str,
    /// Its position, if the document is valid text.
    pub position: Option<Position>,
    /// Its end, if it is a node.
    pub end: Option<Position>,
    /// The path of the node, such as `limits[0].rules[1].algo`. Empty for the whole document.
    pub path: String,
    /// What was found and what is allowed.
    pub message: String,
}

/// All problems of a document in document order, one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    more: usize,
}

impl Problems {
    /// The problems in `list`, and the count of further ones.
    pub(super) fn new(mut list: Vec<Problem>, more: usize) -> Problems {
        let more = more + list.len().saturating_sub(SHOWN);
        list.truncate(SHOWN);
        Problems { list, more }
    }

    /// A single problem of the text as a whole.
    pub(super) fn one(position: Option<Position>, message: String) -> Problems {
        Problems::new(vec![Problem::of_text(position, message)], 0)
    }

    /// The displayed problems.
    #[must_use]
    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    /// The number of further problems.
    #[must_use]
    pub fn more(&self) -> usize {
        self.more
    }
}

impl Problem {
    /// A problem of the text, before it is read as a document.
    pub(super) fn of_text(position: Option<Position>, message: String) -> Problem {
        Problem { id: "invalid-text", position, end: None, path: String::new(), message }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.position {
            write!(f, "{line}:{column} ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

impl Error for Problems {}
