//! The keys of every mapping that a document is made of, for its readers and for their hints.

use diana_core::algorithm::REGISTRY;

/// Keys of the full form.
pub const DOCUMENT: &[&str] = &[
    "limits",
    "actors",
    "except",
    "time_zone",
    "response",
    "shadow",
    "namespace",
    "keys",
    "log",
    "accepted",
    "mark",
    "redis",
    "remote",
    "explain",
    "plans",
    "admin",
];

/// Those of them that a remote document may have.
pub const REMOTE_DOCUMENT: &[&str] =
    &["limits", "actors", "except", "time_zone", "response", "shadow", "plans"];

/// Keys of an entry.
pub const ENTRY: &[&str] =
    &["Url", "url", "rules", "match", "unless", "except", "response", "ignore_case"];

/// Keys of `accepted`.
pub const ACCEPTED: &[&str] = &["headers", "filter_state"];

/// Keys of `match` and `unless`.
pub const MATCH: &[&str] =
    &["methods", "hosts", "headers", "query", "cookies", "addresses", "metadata", "claims"];

/// Keys of `claims`.
pub const CLAIMS: &[&str] = &["payload", "values"];

/// Keys that every rule may have, whatever its algorithm.
pub const RULE: &[&str] = &[
    "actor",
    "unit",
    "rpu",
    "algo",
    "scope",
    "name",
    "cost",
    "absent",
    "enforce",
    "shadow",
    "expose",
    "except",
    "response",
    "ban",
    "quota",
    "hot",
    "count",
    "in_flight",
    "near",
    "plans",
    "on_failure",
];

/// Keys that some algorithm takes.
pub fn algorithms() -> Vec<&'static str> {
    let mut keys = Vec::new();
    for key in REGISTRY.iter().flat_map(|entry| entry.keys) {
        if !keys.contains(&key.name) {
            keys.push(key.name);
        }
    }
    keys
}

/// Keys of a plan.
pub fn plan() -> Vec<&'static str> {
    let mut keys = vec!["rpu"];
    let by_plan = REGISTRY.iter().flat_map(|entry| entry.keys).filter(|key| key.by_plan);
    for key in by_plan {
        if !keys.contains(&key.name) {
            keys.push(key.name);
        }
    }
    keys.extend(["in_flight", "cost"]);
    keys
}
