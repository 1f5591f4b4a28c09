//! Names of what lies outside of a document: clusters of Envoy, variables of the environment.

use super::node::Node;

/// What the name of a cluster may be.
pub const CLUSTER: &str = "the name of a cluster in Envoy, up to 255 visible ASCII characters";
/// What the name of a variable may be.
pub const VARIABLE: &str = "the name of a variable: A-Z, a-z, 0-9 and `_`";

/// The name of a cluster.
pub fn cluster(node: &Node<'_>) -> Option<String> {
    visible(node, CLUSTER, 255)
}

/// The name of a variable.
pub fn variable(node: &Node<'_>) -> Option<String> {
    let text = visible(node, VARIABLE, 255)?;
    if text.bytes().any(|byte| !byte.is_ascii_alphanumeric() && byte != b'_') {
        node.reject(VARIABLE);
    }
    Some(text)
}

/// Text without spaces, up to `most` bytes of it.
pub fn visible(node: &Node<'_>, allowed: &str, most: usize) -> Option<String> {
    let text = node.free_text(allowed)?;
    if (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(text.into());
    }
    node.reject(allowed);
    None
}
