//! Actors: kinds of callers in the configuration.

use crate::tree::Tree;

/// A named kind of caller.
#[derive(Debug, Clone, PartialEq)]
pub struct Actor {
    /// The name that rules use.
    pub name: String,
    /// Read in order. The first source with a value identifies the caller.
    pub sources: Vec<IdentitySource>,
}

/// The configuration of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct IdentitySource {
    /// The name of its kind in the registry, such as `header`.
    pub kind: &'static str,
    /// The value of the main key.
    pub value: Tree,
    /// The options next to the main key.
    pub options: Vec<(String, Tree)>,
}
