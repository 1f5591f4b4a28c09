//! Outcomes and usage of HTTP on paths of gRPC: its errors have status 200, and its usage is in trailers.

use diana_config::Advice;
use diana_policy::path::Segment;
use diana_policy::{Policy, Prefix, ResponseSource, Rule};

/// Names the rules with such outcomes, and those that look for usage in headers.
pub fn advice(policy: &Policy) -> Vec<Advice> {
    let by_status = "`count` of these rules lists statuses of HTTP, but their paths look like those of gRPC, whose errors have status \
                     200; list statuses of gRPC, such as `grpc_status: [16]` for a wrong password";
    let by_header = "`cost` of these rules reads a header of the response, but their paths look like those of gRPC, whose services \
                     report usage in trailers; read it by `trailer`";
    let advice = |(id, message, is): (_, &str, fn(&Rule) -> bool)| about(policy, id, message, is);
    [
        ("grpc-status", by_status, counts_by_status as fn(&Rule) -> bool),
        ("grpc-header", by_header, reads_header),
    ]
    .into_iter()
    .filter_map(advice)
    .collect()
}

fn about(
    policy: &Policy,
    id: &'static str,
    message: &str,
    is: fn(&Rule) -> bool,
) -> Option<Advice> {
    let limits = policy.limits.iter().filter(|limit| limit.urls.iter().any(is_service));
    let rules = limits.flat_map(|limit| &limit.rules).filter(|rule| is(rule));
    let rules: Vec<String> = rules.map(|rule| rule.name.clone()).collect();
    (!rules.is_empty()).then(|| Advice { rules, ..Advice::new(id, message) })
}

fn counts_by_status(rule: &Rule) -> bool {
    let count = rule.settling.as_ref().and_then(|settling| settling.count.as_ref());
    count.is_some_and(|count| !count.statuses.is_empty() && count.grpc_statuses.is_empty())
}

fn reads_header(rule: &Rule) -> bool {
    let cost = rule.settling.as_ref().and_then(|settling| settling.response_cost.as_ref());
    let has = |is: fn(&ResponseSource) -> bool| {
        cost.is_some_and(|cost| cost.terms.iter().any(|term| is(&term.source)))
    };
    has(|source| matches!(source, ResponseSource::Header(_)))
        && !has(|source| matches!(source, ResponseSource::Trailer(_)))
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
