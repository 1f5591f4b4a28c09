//! Callers by a value that is renewed, such as a token or a certificate, under limits for hours and longer.

use diana_config::Advice;
use diana_policy::time::Unit;
use diana_policy::tree::Tree;
use diana_policy::{IdentitySource, Policy, Rule};

/// Headers with credentials, which are tokens or certificates in most services.
const HEADERS: [&str; 3] = ["authorization", "proxy-authorization", "x-forwarded-client-cert"];

/// Claims that differ in each token.
const CLAIMS: [&str; 4] = ["jti", "iat", "exp", "nbf"];

/// Names the rules with such callers.
pub fn advice(policy: &Policy) -> Option<Advice> {
    let rules = policy.limits.iter().flat_map(|limit| &limit.rules);
    let long = rules.filter(|rule| {
        !rule.is_in_flight() && rule.quota.period() >= Unit::Hour.micros() && reads(policy, rule)
    });
    let rules: Vec<String> = long.map(|rule| rule.name.clone()).collect();
    let message = "these rules count by a token or a certificate, and each new one has the whole limit again; count by a value that \
                   stays, such as the claim `sub` or `uri_san` of the certificate; a key that is never renewed may stay";
    (!rules.is_empty()).then(|| Advice { rules, ..Advice::new("renewed-key", message) })
}

/// Returns true if a part of the rule's key is renewed.
fn reads(policy: &Policy, rule: &Rule) -> bool {
    let actors = rule.actor.iter().filter_map(|index| policy.actors.get(*index));
    actors.flat_map(|actor| &actor.sources).any(is_renewed)
}

fn is_renewed(source: &IdentitySource) -> bool {
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
