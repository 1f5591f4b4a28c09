//! What an operator may see and do: `explain` and `admin`.

use super::actors::Known;
use super::fields::Fields;
use super::{headers, values};
use diana_core::policy::{Admin, Explain, Prefix};

const EXPLAIN: &str = "a mapping such as `{header: x-diana-explain, token_env: DIANA_TOKEN}`";

/// Keys of `explain`.
pub const EXPLAIN_KEYS: &[&str] = &["header", "token_env"];

/// Reads `explain`.
pub fn explain(top: &Fields<'_>) -> Option<Explain> {
    let fields = Fields::read(top.get("explain")?, EXPLAIN, EXPLAIN_KEYS)?;
    let header = fields.require("header", "the name of a header").and_then(headers::marker);
    let token_env = fields.require("token_env", values::VARIABLE).and_then(values::variable);
    Some(Explain { header: header?, token_env: token_env? })
}

const ADMIN: &str = "a mapping such as `{path: /.diana, token_env: DIANA_TOKEN}`";
/// Keys of `admin`.
pub const ADMIN_KEYS: &[&str] = &["path", "token_env"];

const PATH: &str = "a path such as `/.diana`, not `/` alone";

/// Reads `admin`.
pub fn admin(top: &Fields<'_>) -> Option<Admin> {
    let fields = Fields::read(top.get("admin")?, ADMIN, ADMIN_KEYS)?;
    let token_env = fields.require("token_env", values::VARIABLE).and_then(values::variable);
    let node = fields.require("path", PATH)?;
    let text = node.text(PATH)?;
    let prefix = match Prefix::parse(text, false) {
        Ok(prefix) if prefix.path().len() > 1 => prefix,
        Ok(_) => {
            node.reject(PATH);
            return None;
        }
        Err(why) => {
            node.problem(format!("`{text}` {why}"));
            return None;
        }
    };
    let path = String::from_utf8_lossy(prefix.path()).into_owned();
    Some(Admin { path, token_env: token_env? })
}

/// Reports a header that is the operator's and an actor's.
pub fn keep_apart(top: &Fields<'_>, explain: &Option<Explain>, actors: &[Known]) {
    let (Some(explain), Some(node)) = (explain, top.get("explain")) else { return };
    let taken = |known: &&Known| {
        known.sources.iter().any(|source| source.header() == Some(&*explain.header))
    };
    if let Some(known) = actors.iter().find(taken) {
        let name = &known.actor.name;
        node.problem(format!("actor `{name}` is told by this header; allowed: another one"));
    }
}
