//! Headers in a configuration. Their names and values cannot split a message.

use std::rc::Rc;

use super::fields::Fields;
use super::mapping::Allowed;
use super::node::Node;
use diana_policy::spelling::header::{is_name, is_value};

/// A header's value.
pub const VALUE: Allowed =
    Allowed::Text("at most 1024 visible ASCII characters, and spaces only between them", is_value);
/// A header's name.
pub const NAME: Allowed = Allowed::Text("the name of a header", is_name);
/// The name of a header that marks requests.
pub const MARKER: Allowed =
    Allowed::Text("the name of a header that is not used elsewhere, such as `x-hot-key`", |name| {
        let reserved = |(reserved, _): &(&str, &str)| name.eq_ignore_ascii_case(reserved);
        is_name(name) && !CONNECTION.iter().chain(REQUEST).any(reserved)
    });
const MAX_HEADERS: usize = 32;

/// Names of headers that cannot be set, each with a hint.
pub type Reserved = &'static [(&'static str, &'static str)];

/// Headers of the connection, not of the message.
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

/// Request headers that a mark must not replace.
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
pub fn marker(fields: &Fields<'_>, key: &'static str) -> Option<Rc<str>> {
    Some(fields.text(key)?.to_ascii_lowercase().into())
}

/// Reads `headers` with their names.
pub fn read<'a>(fields: &Fields<'a>, reserved: Reserved) -> Vec<(String, Node<'a>)> {
    let pairs = fields.named("headers");
    if pairs.len() > MAX_HEADERS {
        let message = format!("found {} headers, allowed: at most {MAX_HEADERS}", pairs.len());
        fields.report("headers", message);
        return Vec::new();
    }
    let mut headers: Vec<(String, Node<'_>)> = Vec::new();
    for (key, node) in pairs {
        let name = key.to_ascii_lowercase();
        let reserved = reserved.iter().chain(CONNECTION).find(|(reserved, _)| *reserved == name);
        if !is_name(&name) {
            node.key_problem("not a valid header name".into());
        } else if let Some((_, hint)) = reserved {
            node.key_problem(format!(
                "not allowed: the proxy or the filter sets this header{hint}"
            ));
        } else if name != key && headers.iter().any(|(earlier, _)| *earlier == name) {
            node.key_problem(format!("duplicate key: the same header as `{name}`"));
        }
        headers.push((name, node));
    }
    headers
}

/// Reads a header's value.
pub fn value(node: &Node<'_>) -> Option<String> {
    node.fitting(&VALUE).map(Into::into)
}
