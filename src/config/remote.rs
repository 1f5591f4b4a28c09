//! `remote`: a configuration server.

use super::fields::Fields;
use super::headers::VALUE;
use super::headers::{self, Reserved};
use super::mapping::Allowed;
use super::mapping::Allowed::{Choice, Duration, Either, Flag, Map, Named, Size, Text};
use super::mapping::{Choices, Mapping, mapping, optional, required, words};
use super::node::Node;
use super::values::is_visible;
use super::values::{CLUSTER, TEXT, VARIABLE};
use diana_policy::remote::{Remote, RemoteHeader};
use diana_policy::time::DAY;
use diana_policy::time::{Micros, SECOND, spell};
use diana_policy::tree::Tree;

/// `remote`.
pub static REMOTE: Mapping = mapping(
    "remote",
    "a mapping such as `{cluster: config_centre, path: /diana.yaml}`",
    &[
        required("cluster", CLUSTER),
        optional(
            "authority",
            Text("a host such as config.example.com, up to 255 visible ASCII characters", |text| {
                is_visible(text, 255)
            }),
        ),
        required("path", PATH),
        optional("method", Choice(|| words(METHODS))),
        optional("headers", Named("a mapping such as `{x-token: {env: DIANA_TOKEN}}`", &HEADER)),
        optional("body", TEXT),
        optional("every", Duration(SECOND, DAY)),
        optional("timeout", Duration(SECOND / 100, 30 * SECOND)),
        optional("value", POINTER),
        optional("base64", Flag),
        optional("max_size", Size(16 << 20)),
    ],
);

/// HTTP methods of requests to a configuration server.
const METHODS: Choices<&str> = &[("GET", "GET"), ("POST", "POST")];

/// A header's value, possibly from the environment.
const HEADER: Allowed = Either(&[VALUE, Map(&FROM_ENVIRONMENT)]);
static FROM_ENVIRONMENT: Mapping =
    mapping("variable", "a mapping such as `{env: DIANA_TOKEN}`", &[required("env", VARIABLE)]);

/// The allowed values of `path`.
const PATH: Allowed = Allowed::Text(
    "a path that begins with `/`, such as `/diana.yaml`, with an optional query, up to 2048 visible ASCII characters",
    |text| text.starts_with('/') && is_visible(text, 2048),
);

/// The allowed values of `value`.
const POINTER: Allowed = Allowed::Text(
    "a JSON pointer that begins with `/`, such as `/kvs/0/value`; in names write `~0` for `~` and `~1` for `/`",
    |text| {
        let is_escape = |rest: &str| rest.starts_with(['0', '1']);
        text.starts_with('/') && text.split('~').skip(1).all(is_escape)
    },
);

const MAX_BODY: usize = 64 << 10;

const EVERY: Micros = 10 * SECOND;
const TIMEOUT: Micros = SECOND;
const MAX_SIZE: usize = 1 << 20;

/// Headers that other keys set.
const RESERVED: Reserved = &[
    ("host", "; use `authority`"),
    ("x-diana-gateway", ": Diana sets it"),
    ("x-diana-document", ": Diana sets it"),
];

/// Reads `remote`.
pub fn read(top: &Fields<'_>) -> Option<Remote> {
    let fields = top.mapping("remote")?;
    let cluster = fields.text("cluster").unwrap_or_default();
    let headers = headers::read(&fields, RESERVED);
    let method = fields.choice("method", METHODS).unwrap_or("GET");
    let every = fields.number("every").unwrap_or(EVERY);
    Some(Remote {
        authority: fields.text("authority").unwrap_or(cluster).into(),
        cluster: cluster.into(),
        path: fields.text("path").unwrap_or_default().into(),
        method,
        headers: headers
            .into_iter()
            .filter_map(|(name, node)| Some((name, header(&node)?)))
            .collect(),
        body: body(&fields, method).unwrap_or_default(),
        every,
        timeout: timeout(&fields, every),
        value: fields.text("value").map(Into::into),
        base64: fields.flag("base64", false),
        max_size: fields.number("max_size").unwrap_or(MAX_SIZE),
    })
}

fn header(node: &Node<'_>) -> Option<RemoteHeader> {
    let Tree::Map(_) = node.tree() else { return headers::value(node).map(RemoteHeader::Text) };
    Fields::read(node, &HEADER)?.text("env").map(|name| RemoteHeader::Variable(name.into()))
}

fn body(fields: &Fields<'_>, method: &str) -> Option<String> {
    let text = fields.text("body")?;
    let node = fields.get("body")?;
    if text.len() > MAX_BODY {
        node.problem(format!("found {} bytes, allowed: at most {MAX_BODY}", text.len()));
    } else if method == "GET" {
        node.problem("not allowed with `method: GET`; write `method: POST`".into());
    }
    Some(text.into())
}

/// The timeout must not exceed the interval, so that at most one request is pending.
fn timeout(fields: &Fields<'_>, every: Micros) -> Micros {
    let timeout = fields.number("timeout");
    if let (Some(node), true) = (fields.get("timeout"), timeout.is_some_and(|it| it > every)) {
        node.reject(format!("at most `every`, {}", spell(every)));
    }
    timeout.unwrap_or(TIMEOUT)
}
