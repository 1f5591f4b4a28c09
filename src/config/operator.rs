//! What an operator may see: `explain`.

use super::actors::Known;
use super::fields::Fields;
use super::{headers, values};
use diana_core::policy::Explain;

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
