//! What the native module cannot do. There it is a problem, with what to write instead.

use super::node::Node;
use diana_policy::IdentitySource;
use diana_policy::tree::Tree;
use diana_request::identity::{jwt_claim, metadata};

/// Claims in the metadata of jwt_authn.
const CLAIM: &str = "the native module cannot read claims from metadata; use `payload_header`, the \
                     `forward_payload_header` of jwt_authn";

/// Numbers in claims.
const NUMBER: &str = "the native module cannot read claims from metadata; use plans `by` a `jwt_claim` with \
                      `payload_header`, or `metadata` with a key at the first level";

/// Claims as conditions.
pub const CLAIMS: &str = "the native module cannot read claims from metadata; let jwt_authn set headers by \
                      `claim_to_headers`, and use `headers`";

/// Metadata below the first level.
pub const NESTED: &str =
    "the native module reads only the first level of metadata: a namespace and one key";

/// Metadata of a message.
pub const TYPED: &str =
    "the native module cannot read typed metadata; use `header`, or metadata without `typed`";

/// Reports a source of a caller that the native module cannot read.
pub fn check_source(node: &Node<'_>, source: &IdentitySource) {
    if source.kind == jwt_claim::KIND.name && source.options.iter().any(|(key, _)| key == "payload")
    {
        node.descend("payload").native_problem(CLAIM);
    }
    if source.kind == metadata::KIND.name {
        check_metadata(&node.descend("metadata"));
        if source.options.contains(&(metadata::TYPED.into(), Tree::Bool(true))) {
            node.descend(metadata::TYPED).native_problem(TYPED);
        }
    }
}

/// Reports the source of a number in trusted data that the native module cannot read.
pub fn check_number(node: &Node<'_>, source: &IdentitySource) {
    match source.options.iter().any(|(key, _)| key == "payload") {
        true => node.descend("payload").native_problem(NUMBER),
        false => check_source(node, source),
    }
}

/// Reports a path in metadata that the native module cannot read.
pub fn check_metadata(node: &Node<'_>) {
    if matches!(node.tree(), Tree::List(path) if path.len() > 2) {
        node.native_problem(NESTED);
    }
}
