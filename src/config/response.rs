//! `response`: the answer to a refused request.

use std::rc::Rc;

use super::fields::Fields;
use super::headers::{self, Reserved, value};
use super::node::Node;
use diana_core::policy::Response;

const WHAT: &str = "a mapping such as `{status: 429, body: slow down}`";
/// Its keys.
pub const KEYS: &[&str] = &["status", "body", "content_type", "headers"];
const HEADERS: &str = "a mapping such as `{x-reason: rate limit}`";
const MAX_BODY: usize = 8 << 10;

/// Headers that Diana sets itself, each with a hint.
const OWN: Reserved = &[
    ("retry-after", ""),
    ("x-envoy-ratelimited", ""),
    ("ratelimit", ""),
    ("ratelimit-policy", ""),
    ("grpc-status", ""),
    ("grpc-message", ""),
    ("content-type", "; use `content_type`"),
    ("host", ""),
];

/// The answer where nothing is configured.
pub fn standard() -> Response {
    Response {
        status: 503,
        body: "rate limit exceeded".into(),
        content_type: "text/plain".into(),
        headers: Vec::new(),
    }
}

/// Reads `response` of the document, of an entry or of a rule. What it leaves out is as in `outer`.
pub fn read(around: &Fields<'_>, outer: &Rc<Response>) -> Rc<Response> {
    let fields = around.get("response").and_then(|node| Fields::read(node, WHAT, KEYS));
    let Some(fields) = fields else { return Rc::clone(outer) };
    let mut response = Response::clone(outer);
    if let Some(status) = fields.get("status").and_then(|node| node.whole(400, 599)) {
        response.status = u16::try_from(status).unwrap_or(response.status);
    }
    if let Some(body) = fields.get("body").and_then(body) {
        response.body = body;
    }
    if let Some(content_type) = fields.get("content_type").and_then(value) {
        response.content_type = content_type;
    }
    if let Some(node) = fields.get("headers") {
        response.headers = headers::read(node, HEADERS, OWN, value);
    }
    Rc::new(response)
}

fn body(node: &Node<'_>) -> Option<String> {
    let text = node.free_text("text")?;
    let is_control = |found: char| found.is_control() && !['\t', '\n', '\r'].contains(&found);
    if text.len() > MAX_BODY {
        node.problem(format!("found {} bytes, allowed: at most {MAX_BODY}", text.len()));
    } else if text.chars().any(is_control) {
        node.problem("found a control character, allowed: lines of text".into());
    } else if text.ends_with(['\n', '\r']) {
        node.problem(
            "ends in a newline, which gRPC cannot carry; in YAML write `|-`, not `|`".into(),
        );
    } else {
        return Some(text.into());
    }
    None
}
