//! Outcomes by the status of HTTP on paths of gRPC, whose errors have status 200.

use diana_config::Advice;
use diana_policy::path::Segment;
use diana_policy::{Limit, Policy, Prefix, Rule};

/// Names the rules with such outcomes.
pub fn advice(policy: &Policy) -> Option<Advice> {
    let limits = policy.limits.iter().filter(|limit| limit.urls.iter().any(is_service));
    let by_status = |limit: &Limit| -> Vec<String> {
        let rules = limit.rules.iter().filter(|rule| counts_by_status(rule));
        rules.map(|rule| rule.name.clone()).collect()
    };
    let rules: Vec<String> = limits.flat_map(by_status).collect();
    let message = "`count` of these rules lists statuses of HTTP, but their paths look like those of gRPC, whose errors have status \
                   200; list statuses of gRPC, such as `grpc_status: [16]` for a wrong password";
    (!rules.is_empty()).then(|| Advice { rules, ..message.into() })
}

fn counts_by_status(rule: &Rule) -> bool {
    let count = rule.settling.as_ref().and_then(|settling| settling.count.as_ref());
    count.is_some_and(|count| !count.statuses.is_empty() && count.grpc_statuses.is_empty())
}

/// Returns true if the path begins with a service in a package, as in `/shop.v1.Cart/Add`.
fn is_service(path: &Prefix) -> bool {
    let Some(Segment::Name(name)) = path.segments().next() else { return false };
    let mut parts = name.split(|byte| *byte == b'.');
    let is_word = |part: &[u8]| {
        part.first().is_some_and(u8::is_ascii_alphabetic)
            && part.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    // A file has its extension in lower case. Where case is ignored, a path has no capitals.
    let service = parts.next_back().unwrap_or_default();
    let is_capital = path.ignores_case() || service.first().is_some_and(u8::is_ascii_uppercase);
    is_capital && is_word(service) && parts.clone().count() > 0 && parts.all(is_word)
}
