//! Texts to import, and places in them.

use std::fmt;
use std::rc::Rc;

/// A file, or standard input.
#[derive(Debug, Clone)]
pub struct SourceText {
    /// Its name in messages.
    pub name: Rc<str>,
    /// Its text.
    pub text: String,
}

/// Further files that a text may include.
pub trait SourceFiles {
    /// The files that a pattern with `*` names, in the order of their names. A relative one is
    /// looked up in the folder of `from`, the file that includes them.
    ///
    /// # Errors
    /// Why they are unreadable.
    fn included(&self, pattern: &str, from: &str) -> Result<Vec<SourceText>, String>;
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The name of the file.
    pub file: Rc<str>,
    /// The line, from one.
    pub line: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
