//! `redis`: where all gateways count together.

use super::fields::Fields;
use super::node::Node;
use super::values;
use diana_core::policy::redis::{OnFailure, Redis};
use diana_core::redis::part::Parts;
use diana_core::time::{Micros, SECOND};

const WHAT: &str = "a mapping such as `{cluster: diana_redis}`";
/// Its keys.
pub const KEYS: &[&str] =
    &["cluster", "timeout", "on_failure", "username_env", "password_env", "db", "proxied", "parts"];

/// What means nothing to a proxy, which logs in by itself and shares its connections.
const DIRECT: &[&str] = &["username_env", "password_env", "db"];

const MILLISECOND: Micros = SECOND / 1000;
const TIMEOUT: Micros = 20 * MILLISECOND;

/// Redis itself has 16 databases unless its own configuration says otherwise, a cluster of them one.
const MAX_DB: u64 = 65_535;

const ON_FAILURE: [(&str, OnFailure); 3] =
    [("gateway", OnFailure::Gateway), ("allow", OnFailure::Allow), ("deny", OnFailure::Deny)];

/// Reads `redis`.
pub fn read(top: &Fields<'_>) -> Option<Redis> {
    let fields = Fields::read(top.get("redis")?, WHAT, KEYS)?;
    let timeout = fields.get("timeout");
    let timeout = timeout.and_then(|node| values::duration(node, MILLISECOND, SECOND));
    let db = fields.get("db").and_then(|node| node.whole(0, MAX_DB));
    let cluster = fields.require("cluster", values::CLUSTER).and_then(values::cluster);
    if let (Some(node), None) = (fields.get("username_env"), fields.get("password_env")) {
        node.key_problem("means nothing without `password_env`".into());
    }
    let is_proxied = fields.get("proxied").map_or(Some(false), Node::boolean);
    for node in DIRECT.iter().filter(|_| is_proxied == Some(true)).filter_map(|key| fields.get(key))
    {
        node.key_problem(
            "means nothing with `proxied: true`: the proxy logs in, to database 0".into(),
        );
    }
    Some(Redis {
        parts: parts(&fields, is_proxied).unwrap_or(1),
        cluster: cluster.unwrap_or_default(),
        timeout: timeout.unwrap_or(TIMEOUT),
        on_failure: on_failure(&fields).unwrap_or(OnFailure::Gateway),
        username_env: fields.get("username_env").and_then(values::variable),
        password_env: fields.get("password_env").and_then(values::variable),
        db: db.and_then(|db| u32::try_from(db).ok()).unwrap_or(0),
    })
}

/// Into how many parts the keys fall; Redis itself keeps all of them.
fn parts(fields: &Fields<'_>, is_proxied: Option<bool>) -> Option<u16> {
    let node = fields.get("parts")?;
    let parts = node.whole(1, Parts::MOST.into())?;
    if parts > 1 && is_proxied == Some(false) {
        node.key_problem("means nothing without `proxied: true`: Redis itself is one part".into());
    }
    u16::try_from(parts).ok()
}

/// Reads `on_failure`, which `redis` and its rules have.
pub fn on_failure(fields: &Fields<'_>) -> Option<OnFailure> {
    let names = ON_FAILURE.map(|(name, _)| name);
    let chosen = fields.get("on_failure")?.choice(&names, &names.join(", "))?;
    ON_FAILURE.get(chosen).map(|(_, on_failure)| *on_failure)
}
