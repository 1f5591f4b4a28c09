//! How callers are recognised.

use crate::tree::Tree;

/// A named way to recognise callers.
#[derive(Debug, Clone, PartialEq)]
pub struct Actor {
    /// The name that rules use.
    pub name: String,
    /// Asked in order; the first that yields a value wins.
    pub sources: Vec<IdentitySource>,
}

/// Where a caller's identity is looked for, as it is configured.
#[derive(Debug, Clone, PartialEq)]
pub struct IdentitySource {
    /// The name of its kind, such as `header`, by which it stands in the registry.
    pub kind: &'static str,
    /// What stands under that name.
    pub value: Tree,
    /// What stands beside it.
    pub options: Vec<(String, Tree)>,
}
