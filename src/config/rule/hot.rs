//! `hot` of a rule.

use crate::actors::Known;
use crate::context::Context;
use crate::fields::Fields;
use crate::headers;
use crate::values;
use diana_core::policy::Hot;
use diana_core::time::SECOND;

const WHAT: &str = "a mapping such as `{over: 1000, per: 10s, header: x-hot-key}`";
/// Its keys.
pub const KEYS: &[&str] = &["over", "per", "header", "top", "reveal"];
const PER: &str = "a duration such as `10s`";

/// Reads `hot`; `is_all` says whether the rule is for everybody as one.
#[inline(never)]
pub fn read(rule: &Fields<'_>, is_all: bool, context: &Context<'_>) -> Option<Hot> {
    let node = rule.get("hot")?;
    if is_all {
        node.key_problem(
            "means nothing beside `actor: all`, which is a single caller; leave it out".into(),
        );
        return None;
    }
    let fields = Fields::read(node, WHAT, KEYS)?;
    let over = fields.require("over", "a whole number, 1 … 1000000000");
    let over = over.and_then(|node| node.whole(1, 1_000_000_000));
    let per = fields.require("per", PER);
    // Shorter ones would end before the workers have told each other.
    let per = per.and_then(|node| values::duration(node, SECOND, 3600 * SECOND));
    let header = fields.get("header").and_then(|node| {
        let marker = headers::marker(node)?;
        let taken =
            |known: &&Known| known.sources.iter().any(|source| source.header() == Some(&*marker));
        if let Some(known) = context.actors.iter().find(taken) {
            // It is taken off every request before anything is judged.
            let name = &known.actor.name;
            node.problem(format!("actor `{name}` is told by this header; allowed: another one"));
        }
        Some(marker)
    });
    let top = fields.get("top").and_then(|node| node.whole(1, 100)).unwrap_or(10);
    let reveal = fields.flag("reveal", false);
    Some(Hot { over: over?, per: per?, header, top: top as usize, reveal })
}
