//! Documents that share usage, since their plugins in one Envoy have the same root id.

use diana_policy::tree::Tree;

use crate::manifest::FoundRules;

/// The index of each such document, with a message.
pub fn of(found: &[FoundRules]) -> Vec<(usize, String)> {
    let other = |(index, second): (usize, &FoundRules)| {
        let shares = |first: &FoundRules| shared(first, second);
        let shared = found.iter().take(index).find_map(shares)?;
        let message = format!(
            "another document has the same root id, so both count under the namespace `{shared}`, and rules of one use up \
             the limits of the other; set another `namespace` in each"
        );
        Some((index, message))
    };
    found.iter().enumerate().filter_map(other).collect()
}

/// The namespace of two different documents in one configuration of Envoy, unless both name it.
fn shared(first: &FoundRules, second: &FoundRules) -> Option<String> {
    let (Some((envoy, id)), Some((other_envoy, other_id))) = (&first.root, &second.root) else {
        return None;
    };
    let (Ok(one), Ok(other)) = (&first.source, &second.source) else { return None };
    let (one, other) = (one.documents(), other.documents());
    let (named, other_named) = (namespace(one), namespace(other));
    let is_same = named.unwrap_or(id) == other_named.unwrap_or(other_id);
    let is_known = named.is_some() && other_named.is_some();
    (envoy == other_envoy && is_same && !is_known && one != other)
        .then(|| named.unwrap_or(id).to_owned())
}

/// The configured namespace.
fn namespace(documents: &[Tree]) -> Option<&str> {
    let Some(Tree::Map(pairs)) = documents.first() else { return None };
    pairs.iter().find(|(key, _)| key == "namespace").and_then(|(_, value)| value.text())
}
