//! Names of rules, for logs, clients and metrics.
//!
//! A rule of a team has its owner in front, such as `team-a/shop/checkout`: a namespace and a policy.

use std::borrow::Cow;

/// Maximum number of names in a line.
const MOST: usize = 20;

/// The name that clients get: without the owner.
#[must_use]
pub fn for_clients(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The name in metrics: `/` is `_S_`, `.` is `_D_`, and a hyphen of the rule itself is `_H_`. No two
/// names are the same there, also after Envoy has replaced all hyphens: names have no capital letters,
/// and owners no underscores.
#[must_use]
pub fn in_metrics(name: &str) -> Cow<'_, str> {
    match name.rsplit_once('/') {
        Some((owner, rule)) => {
            let owner = owner.replace('/', "_S_").replace('.', "_D_");
            format!("{owner}_S_{}", rule.replace('-', "_H_")).into()
        }
        None => name.into(),
    }
}

/// The names, with commas between them: the first 20, and the number of further ones.
#[must_use]
pub fn listed(names: &[String]) -> String {
    let first = names.get(..MOST).unwrap_or(names).join(", ");
    match names.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
