//! Callers by a value that is renewed, such as a token or a certificate, under limits for hours and longer.

use super::about::About;
use diana_policy::time::Unit;
use diana_policy::tree::Tree;
use diana_policy::{IdentitySource, Rule};

/// Headers with credentials, which are tokens or certificates in most services.
const HEADERS: [&str; 3] = ["authorization", "proxy-authorization", "x-forwarded-client-cert"];

/// Claims that differ in each token.
const CLAIMS: [&str; 4] = ["jti", "iat", "exp", "nbf"];

/// Returns true if a part of a rule's key is renewed.
pub fn is_renewed(about: &About<'_>, rule: &Rule) -> bool {
    let mut sources = about.actors_of(rule).flat_map(|known| &known.actor.sources);
    !rule.is_in_flight()
        && rule.quota.period() >= Unit::Hour.micros()
        && sources.any(is_source_renewed)
}

fn is_source_renewed(source: &IdentitySource) -> bool {
    let name = match &source.value {
        Tree::List(steps) => steps.last().and_then(Tree::text),
        value => value.text(),
    };
    let name = name.unwrap_or_default().to_ascii_lowercase();
    match source.kind {
        "peer" => name == "sha256",
        "jwt_claim" => CLAIMS.contains(&name.as_str()),
        "header" | "cookie" | "query" => {
            HEADERS.contains(&name.as_str()) || name.contains("token") || name.contains("jwt")
        }
        _ => false,
    }
}
