//! Outcomes and usage of HTTP on paths of gRPC: its errors have status 200, and its usage is in trailers.

use super::about::{About, Advised, named};
use diana_policy::path::Segment;
use diana_policy::{Prefix, ResponseSource, Rule};

/// Rules with such outcomes.
pub fn find_statuses(about: &About<'_>) -> Vec<Advised> {
    let message = "`count` of these rules lists statuses of HTTP, but their paths look like those of gRPC, whose errors have status \
                   200; list statuses of gRPC, such as `grpc_status: [16]` for a wrong password";
    named(message, rules(about).filter(|rule| counts_by_status(rule)))
}

/// Rules that look for usage in headers.
pub fn find_headers(about: &About<'_>) -> Vec<Advised> {
    let message = "`cost` of these rules reads a header of the response, but their paths look like those of gRPC, whose services \
                   report usage in trailers; read it by `trailer`";
    named(message, rules(about).filter(|rule| reads_header(rule)))
}

/// The rules of entries with such a path.
fn rules<'a>(about: &About<'a>) -> impl Iterator<Item = &'a Rule> + use<'a> {
    let limits = about.policy.limits.iter();
    limits.filter(|limit| limit.urls.iter().any(is_service)).flat_map(|limit| &limit.rules)
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
