//! `response`: the answer to a refused request.

use std::rc::Rc;

use super::fields::Fields;
use super::node::Node;
use super::policy::Response;
use crate::route::header::is_name;

const WHAT: &str = "a mapping such as `{status: 429, body: slow down}`";
const KEYS: &[&str] = &["status", "body", "content_type", "headers"];
const HEADERS: &str = "a mapping such as `{x-reason: rate limit}`";
const VALUE: &str = "at most 1024 visible ASCII characters, and spaces only between them";
const MAX_BODY: usize = 8 << 10;
const MAX_HEADERS: usize = 32;

/// Headers that Diana sets itself, or that belong to the connection and not to the answer.
const RESERVED: &[&str] = &[
    "retry-after",
    "x-envoy-ratelimited",
    "ratelimit",
    "ratelimit-policy",
    "grpc-status",
    "grpc-message",
    "content-type",
    "content-length",
    "transfer-encoding",
    "connection",
    "proxy-connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "host",
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
    let fields = around.get("response").and_then(|node| Fields::read(node, WHAT, KEYS, &[]));
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
        response.headers = headers(node);
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

fn headers(node: &Node<'_>) -> Vec<(String, String)> {
    let pairs = node.pairs(HEADERS).unwrap_or_default();
    if pairs.len() > MAX_HEADERS {
        node.problem(format!("found {} headers, allowed: at most {MAX_HEADERS}", pairs.len()));
        return Vec::new();
    }
    let mut headers: Vec<(String, String)> = Vec::new();
    for (key, node) in pairs {
        let name = key.to_ascii_lowercase();
        if !is_name(&name) {
            node.key_problem("not a header's name".into());
        } else if RESERVED.contains(&name.as_str()) {
            let hint = if name == "content-type" { "; use `content_type`" } else { "" };
            node.key_problem(format!("set by the proxy or the filter itself{hint}"));
        } else if name != key && headers.iter().any(|(earlier, _)| *earlier == name) {
            node.key_problem(format!("duplicate key: the same header as `{name}`"));
        }
        if let Some(value) = value(&node) {
            headers.push((name, value));
        }
    }
    headers
}

/// A header's value.
fn value(node: &Node<'_>) -> Option<String> {
    let text = node.free_text(VALUE)?;
    let is_sound = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if is_sound && text.trim() == text && (1..=1024).contains(&text.len()) {
        return Some(text.into());
    }
    node.reject(VALUE);
    None
}
