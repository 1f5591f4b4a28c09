//! What of requests the rules of a policy look at.

use diana_policy::{self as policy, Policy, Rule, Told};
use diana_request::identity::header;
use diana_request::identity::sources::Sources;

/// Whether any request is exempt from any rule.
pub(super) fn has_exemptions(policy: &Policy) -> bool {
    let by_limit = |limit: &policy::Limit| {
        !limit.except.is_empty() || limit.rules.iter().any(|rule| !rule.except.is_empty())
    };
    !policy.except.is_empty() || policy.limits.iter().any(by_limit)
}

/// Whether requests are exempt by their paths.
pub(super) fn excepts_paths(policy: &Policy) -> bool {
    let by_rule = |rule: &Rule| !rule.except.paths.is_empty();
    let by_limit =
        |limit: &policy::Limit| !limit.except.paths.is_empty() || limit.rules.iter().any(by_rule);
    !policy.except.paths.is_empty() || policy.limits.iter().any(by_limit)
}

/// Whether more of a request's headers matters than its path, so that all of them are best read at once.
pub(super) fn reads_headers(policy: &Policy, actors: &[Sources]) -> bool {
    let by_actor = |actor: &usize| actors.get(*actor).is_some_and(Sources::reads_headers);
    let by_cost = |told: &Told| told.source.kind == header::KIND.name;
    let by_rule = |rule: &Rule| {
        rule.except.reads_headers()
            || rule.actor.iter().any(by_actor)
            || rule.told.as_deref().is_some_and(by_cost)
    };
    let by_limit = |limit: &policy::Limit| limit.reads_headers() || limit.rules.iter().any(by_rule);
    policy.except.reads_headers() || policy.limits.iter().any(by_limit)
}
