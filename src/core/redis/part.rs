//! The parts into which the keys of a namespace fall.

use crate::key::Key;

/// Keys that have one hash tag, so that a cluster keeps them where one call of the script reaches them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All keys of the namespace.
    Whole,
}

impl Part {
    /// Where the values of a caller lie.
    #[must_use]
    pub fn of(_caller: Key) -> Part {
        Part::Whole
    }

    /// The hash tag of its keys. It is not empty, whatever the namespace is.
    #[must_use]
    pub fn tag(self, namespace: &str) -> String {
        match self {
            Part::Whole => format!("{{2:{namespace}}}"),
        }
    }
}
