//! Headers that a configuration sets: names and values that cannot split a message.

use std::rc::Rc;

use super::node::Node;
use diana_core::matching::header::{is_name, is_value};

const VALUE: &str = "at most 1024 visible ASCII characters, and spaces only between them";
const MAX_HEADERS: usize = 32;

/// Names of headers that cannot be set, each with a hint.
pub type Reserved = &'static [(&'static str, &'static str)];

/// Headers that belong to the connection and not to the message.
const CONNECTION: Reserved = &[
    ("content-length", ""),
    ("transfer-encoding", ""),
    ("connection", ""),
    ("proxy-connection", ""),
    ("keep-alive", ""),
    ("te", ""),
    ("trailer", ""),
    ("upgrade", ""),
];

/// Headers of a request that a mark may not take the place of.
const REQUEST: Reserved = &[
    ("host", ""),
    ("cookie", ""),
    ("authorization", ""),
    ("content-type", ""),
    ("x-forwarded-for", ""),
    ("x-forwarded-proto", ""),
    ("x-request-id", ""),
];

/// Reads the name of a header that marks requests.
pub fn marker(node: &Node<'_>) -> Option<Rc<str>> {
    const ALLOWED: &str = "the name of a header that nothing else uses, such as `x-hot-key`";
    let name = node.text(ALLOWED)?.to_ascii_lowercase();
    let is_in = |names: Reserved| names.iter().any(|(reserved, _)| *reserved == name);
    let is_reserved = is_in(CONNECTION) || is_in(REQUEST);
    if is_reserved || !is_name(&name) {
        node.reject(ALLOWED);
        return None;
    }
    Some(name.into())
}

/// Reads a mapping from names to what `value` reads.
pub fn read<V>(
    node: &Node<'_>,
    allowed: &str,
    reserved: Reserved,
    value: fn(&Node<'_>) -> Option<V>,
) -> Vec<(String, V)> {
    let pairs = named(node, allowed, reserved);
    pairs.into_iter().filter_map(|(name, node)| Some((name, value(&node)?))).collect()
}

/// The headers by their names, whose problems are reported.
fn named<'a>(node: &Node<'a>, allowed: &str, reserved: Reserved) -> Vec<(String, Node<'a>)> {
    let pairs = node.pairs(allowed).unwrap_or_default();
    if pairs.len() > MAX_HEADERS {
        node.problem(format!("found {} headers, allowed: at most {MAX_HEADERS}", pairs.len()));
        return Vec::new();
    }
    let mut headers: Vec<(String, Node<'_>)> = Vec::new();
    for (key, node) in pairs {
        let name = key.to_ascii_lowercase();
        let reserved = reserved.iter().chain(CONNECTION).find(|(reserved, _)| *reserved == name);
        if !is_name(&name) {
            node.key_problem("not a header's name".into());
        } else if let Some((_, hint)) = reserved {
            node.key_problem(format!("set by the proxy or the filter itself{hint}"));
        } else if name != key && headers.iter().any(|(earlier, _)| *earlier == name) {
            node.key_problem(format!("duplicate key: the same header as `{name}`"));
        }
        headers.push((name, node));
    }
    headers
}

/// A header's value.
pub fn value(node: &Node<'_>) -> Option<String> {
    let text = node.free_text(VALUE)?;
    if is_value(text) {
        return Some(text.into());
    }
    node.reject(VALUE);
    None
}
