//! Callers by a claim in metadata, where Envoy rounds large numbers.

use super::about::About;
use diana_policy::tree::Tree;
use diana_policy::{IdentitySource, Rule};

/// Claims that are texts by the standards.
const TEXTS: [&str; 10] = [
    "aud",
    "azp",
    "client_id",
    "email",
    "iss",
    "jti",
    "name",
    "preferred_username",
    "scope",
    "sub",
];

/// Returns true if a caller of a rule may be such a number.
pub fn may_be_rounded(about: &About<'_>, rule: &Rule) -> bool {
    about.actors_of(rule).flat_map(|known| &known.actor.sources).any(is_number)
}

fn is_number(source: &IdentitySource) -> bool {
    let is_in_metadata = source.options.iter().any(|(name, _)| name == "payload");
    let name = match &source.value {
        Tree::List(names) => names.last().and_then(Tree::text),
        name => name.text(),
    };
    is_in_metadata && name.is_some_and(|name| !TEXTS.contains(&name))
}
