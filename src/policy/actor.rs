//! Actors: kinds of callers in the configuration.

use super::NumberForm;
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

/// The source of a request's cost. The maximum is in [`Quota::cost`](super::Quota::cost).
#[derive(Debug, Clone, PartialEq)]
pub struct NumberSource {
    /// A header, a query parameter or metadata.
    pub source: IdentitySource,
    /// The encoding of the value.
    pub form: NumberForm,
    /// The cost if the value is missing or not a number, 1 ..= the maximum.
    pub default: u64,
}
