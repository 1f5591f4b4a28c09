//! Callers by a claim in metadata, where Envoy rounds large numbers.

use diana_config::Advice;
use diana_policy::tree::Tree;
use diana_policy::{IdentitySource, Policy};

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

/// Names the rules with callers that may be such a number.
pub fn advice(policy: &Policy) -> Option<Advice> {
    super::about(
        policy,
        "rounded-caller",
        "these rules read a claim by `payload`, where Envoy rounds numbers from 2⁵³ on, so that neighbours share permits and bans; \
         if the claim may have such numbers, read it by `payload_header`",
        |rule| {
            let actors = rule.actor.iter().filter_map(|&actor| policy.actors.get(actor));
            actors.flat_map(|actor| &actor.sources).any(may_be_rounded)
        },
    )
}

fn may_be_rounded(source: &IdentitySource) -> bool {
    let is_in_metadata = source.options.iter().any(|(name, _)| name == "payload");
    let name = match &source.value {
        Tree::List(names) => names.last().and_then(Tree::text),
        name => name.text(),
    };
    is_in_metadata && name.is_some_and(|name| !TEXTS.contains(&name))
}
