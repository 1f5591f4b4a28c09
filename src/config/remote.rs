//! `remote`: a configuration centre.

use super::fields::Fields;
use super::headers::{self, Reserved};
use super::node::Node;
use super::values::{self, visible};
use diana_core::policy::remote::{Header, Remote};
use diana_core::time::{Micros, SECOND, spell};
use diana_core::tree::Tree;

const WHAT: &str = "a mapping such as `{cluster: config_centre, path: /diana.yaml}`";
/// Its keys.
pub const KEYS: &[&str] = &[
    "cluster",
    "authority",
    "path",
    "method",
    "headers",
    "body",
    "every",
    "timeout",
    "value",
    "base64",
    "max_size",
];
/// Keys of a header whose value lies in the environment.
pub const VARIABLE: &[&str] = &["env"];
const AUTHORITY: &str = "a host such as config.example.com, up to 255 visible ASCII characters";
const PATH: &str = "a path such as `/diana.yaml`, which begins with `/`, with its query, up to 2048 \
                    visible ASCII characters";
const HEADERS: &str = "a mapping such as `{x-token: {env: DIANA_TOKEN}}`";
const POINTER: &str = "a JSON pointer such as `/kvs/0/value`, which begins with `/`, with `~0` for `~` \
                       and `~1` for `/` in a name";
const METHODS: [&str; 2] = ["GET", "POST"];
const MAX_BODY: usize = 64 << 10;

const EVERY: Micros = 10 * SECOND;
const TIMEOUT: Micros = SECOND;
const MAX_SIZE: usize = 1 << 20;
const MOST_SIZE: u64 = 16 << 20;

/// Headers that other keys set.
const RESERVED: Reserved = &[("host", "; use `authority`")];

/// Reads `remote`.
pub fn read(top: &Fields<'_>) -> Option<Remote> {
    let fields = Fields::read(top.get("remote")?, WHAT, KEYS)?;
    let cluster = fields.require("cluster", values::CLUSTER).and_then(values::cluster);
    let cluster = cluster.unwrap_or_default();
    let authority = fields.get("authority").and_then(|node| visible(node, AUTHORITY, 255));
    let path = fields.require("path", PATH).and_then(path);
    let method = fields.get("method").and_then(|node| node.choice(&METHODS, "GET, POST"));
    let method = method.and_then(|chosen| METHODS.get(chosen)).unwrap_or(&"GET");
    let every =
        fields.get("every").and_then(|node| values::duration(node, SECOND, 86_400 * SECOND));
    let every = every.unwrap_or(EVERY);
    let flag = |key| fields.flag(key, false);
    let max_size = fields.get("max_size").and_then(|node| values::size(node, MOST_SIZE));
    Some(Remote {
        authority: authority.unwrap_or_else(|| cluster.clone()),
        cluster,
        path: path.unwrap_or_default(),
        method,
        headers: fields
            .get("headers")
            .map(|node| headers::read(node, HEADERS, RESERVED, header))
            .unwrap_or_default(),
        body: fields.get("body").and_then(|node| body(node, method)).unwrap_or_default(),
        every,
        timeout: timeout(&fields, every),
        value: fields.get("value").and_then(pointer),
        base64: flag("base64"),
        max_size: max_size.and_then(|size| usize::try_from(size).ok()).unwrap_or(MAX_SIZE),
    })
}

fn path(node: &Node<'_>) -> Option<String> {
    let path = visible(node, PATH, 2048)?;
    if !path.starts_with('/') {
        node.reject(PATH);
    }
    Some(path)
}

fn header(node: &Node<'_>) -> Option<Header> {
    let Tree::Map(_) = node.tree() else { return headers::value(node).map(Header::Text) };
    let fields = Fields::read(node, "a value, or `{env: NAME}`", VARIABLE)?;
    fields.require("env", values::VARIABLE).and_then(values::variable).map(Header::Variable)
}

fn body(node: &Node<'_>, method: &str) -> Option<String> {
    let text = node.free_text("text")?;
    if text.len() > MAX_BODY {
        node.problem(format!("found {} bytes, allowed: at most {MAX_BODY}", text.len()));
    } else if method == "GET" {
        node.problem("means nothing to `method: GET`; write `method: POST`".into());
    }
    Some(text.into())
}

/// A centre must not be asked again before it has answered.
fn timeout(fields: &Fields<'_>, every: Micros) -> Micros {
    let node = fields.get("timeout");
    let timeout = node.and_then(|node| values::duration(node, SECOND / 100, 30 * SECOND));
    if let (Some(node), Some(timeout)) = (node, timeout)
        && timeout > every
    {
        node.reject(&format!("at most `every`, {}", spell(every)));
    }
    timeout.unwrap_or(TIMEOUT)
}

fn pointer(node: &Node<'_>) -> Option<String> {
    let text = node.free_text(POINTER)?;
    let is_escape = |rest: &str| rest.starts_with(['0', '1']);
    if !text.starts_with('/') || !text.split('~').skip(1).all(is_escape) {
        node.reject(POINTER);
    }
    Some(text.into())
}
