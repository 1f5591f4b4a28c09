//! `redis`: the Redis that all gateways share.

use super::fields::Fields;
use super::mapping::Allowed::{self, Choice, Duration, Flag, Map, Text, Whole};
use super::mapping::{Choices, Mapping, mapping, optional, required, words};
use super::node::Node;
use super::values::{CLUSTER, PIPE, VARIABLE};
use diana_policy::ModuleKind;
use diana_policy::port::Destination;
use diana_policy::redis::MOST_SHARDS;
use diana_policy::redis::{OnFailure, Redis, Secret};
use diana_policy::time::{Micros, SECOND};

/// `redis`.
pub static REDIS: Mapping = mapping(
    "redis",
    "a mapping such as `{cluster: diana_redis}`",
    &[
        // Required, except for the dynamic module with a pipe.
        optional("cluster", CLUSTER),
        optional("pipe", PIPE),
        optional("timeout", Duration(SECOND / 1000, SECOND)),
        optional("on_failure", ON_FAILURE),
        optional("username_env", VARIABLE),
        optional("password_env", VARIABLE),
        optional("password_secret", Map(&SECRET)),
        // Redis has 16 by default, a cluster 1.
        optional("db", Whole(0, 65_535)),
        optional("proxied", Flag),
        optional("parts", Whole(1, MOST_SHARDS as u64)),
        optional("gateways", Whole(1, 10_000)),
    ],
);

static SECRET: Mapping = mapping(
    "password_secret",
    "a mapping such as `{name: redis_password}`",
    &[required("name", SECRET_NAME), optional("sds", SOURCE)],
);

const SECRET_NAME: Allowed = Text("the name of a secret of Envoy", |text| !text.is_empty());
const SOURCE: Allowed =
    Text("a ConfigSource of Envoy as JSON, such as `'{\"ads\": {}}'`", |text| {
        text.starts_with('{') && text.ends_with('}')
    });

/// The behaviour of rules while Redis is unavailable.
pub const ON_FAILURES: Choices<OnFailure> =
    &[("gateway", OnFailure::Gateway), ("allow", OnFailure::Allow), ("deny", OnFailure::Deny)];
/// `on_failure`.
pub const ON_FAILURE: Allowed = Choice(|| words(ON_FAILURES));

/// Keys without a meaning for a proxy, which authenticates itself and shares its connections.
const DIRECT: &[&str] = &["username_env", "password_env", "password_secret", "db"];

/// Why the wasm module refuses `password_secret` alone.
const NO_SECRETS: &str = "the wasm module cannot read secrets of Envoy: use `password_env`, beside it if both modules \
                          read the document";

/// Why the wasm module refuses `pipe` alone.
const NO_PIPES: &str = "the wasm module reaches clusters only: use `cluster`, beside it if both modules read the document";

const TIMEOUT: Micros = 20 * SECOND / 1000;

/// Reads `redis`.
pub fn read(top: &Fields<'_>) -> Option<Redis> {
    let fields = top.mapping("redis")?;
    let has_password = ["password_env", "password_secret"].map(|key| fields.get(key).is_some());
    if let (Some(node), [false, false]) = (fields.get("username_env"), has_password) {
        node.key_problem("requires `password_env`".into());
    }
    if let (Some(node), [false, true]) = (fields.get("password_secret"), has_password)
        && node.module() == ModuleKind::Wasm
    {
        node.key_problem(NO_SECRETS.into());
    }
    let is_proxied = fields.get("proxied").map_or(Some(false), Node::boolean);
    for node in DIRECT.iter().filter(|_| is_proxied == Some(true)).filter_map(|key| fields.get(key))
    {
        node.key_problem(
            "not allowed with `proxied: true`: the proxy logs in and uses database 0".into(),
        );
    }
    let parts = fields.number("parts").unwrap_or(1);
    if let (Some(node), true) = (fields.get("parts"), parts > 1 && is_proxied == Some(false)) {
        node.key_problem("requires `proxied: true`: without a proxy, Redis is one part".into());
    }
    Some(Redis {
        parts,
        gateways: fields.number("gateways").unwrap_or(1),
        destination: destination(&fields),
        timeout: fields.number("timeout").unwrap_or(TIMEOUT),
        on_failure: fields.choice("on_failure", ON_FAILURES).unwrap_or(OnFailure::Gateway),
        username_env: fields.text("username_env").map(Into::into),
        password_env: fields.text("password_env").map(Into::into),
        password_secret: fields.mapping("password_secret").and_then(|secret| {
            let name = secret.text("name")?.into();
            Some(Secret { name, sds: secret.text("sds").map(Into::into) })
        }),
        db: fields.number("db").unwrap_or(0),
    })
}

/// Where Redis is. Only the native module reaches a pipe, and prefers it.
fn destination(fields: &Fields<'_>) -> Destination {
    let pipe = fields.text("pipe").map(|path| Destination::Pipe(path.into()));
    match (fields.get("pipe"), fields.get("cluster"), fields.module()) {
        (Some(node), None, ModuleKind::Wasm) => node.key_problem(NO_PIPES.into()),
        (None, None, _) => _ = fields.require("cluster"),
        _ => {}
    }
    let cluster = Destination::Cluster(fields.text("cluster").unwrap_or_default().into());
    pipe.filter(|_| fields.module() == ModuleKind::Native).unwrap_or(cluster)
}
