//! `rpu` of a rule: a number, or where trusted data says it.

use crate::fields::Fields;
use crate::node::Node;
use diana_core::identity::{self, jwt_claim, metadata};
use diana_core::policy::{IdentitySource, MAX_PERMITS, Told};
use diana_core::tree::Tree;

const WHAT: &str =
    "a whole number, or a mapping such as `{metadata: [plans, rpu], default: 10, max: 5000}`";
/// Keys of `rpu` where data say it.
pub const KEYS: &[&str] = &["metadata", "jwt_claim", "payload", "type", "default", "max"];
const TYPES: &[&str] = &["number", "text"];

/// How much a rule allows.
pub struct Limit {
    /// Permits in a unit, or the most that data may say.
    pub most: u64,
    /// Where it says so, if it does.
    pub told: Option<Told>,
}

/// Reads `rpu`.
#[inline(never)]
pub fn read(rule: &Fields<'_>) -> Option<Limit> {
    let node = rule.require("rpu", &format!("a whole number, 0 … {MAX_PERMITS}"))?;
    if !matches!(node.tree(), Tree::Map(_)) {
        return Some(Limit { most: node.whole(0, MAX_PERMITS)?, told: None });
    }
    let fields = Fields::read(node, WHAT, KEYS)?;
    let most = fields.require("max", &format!("a whole number, 1 … {MAX_PERMITS}"));
    let most = most.and_then(|node| node.whole(1, MAX_PERMITS));
    let allowed = most.unwrap_or(MAX_PERMITS);
    let default = fields.require("default", &format!("a whole number, 0 … {allowed}"));
    let default = default.and_then(|node| node.whole(0, allowed));
    let is_text = match fields.get("type") {
        Some(node) => node.choice(TYPES, &TYPES.join(", ")).map(|chosen| chosen == 1),
        None => Some(false),
    };
    let told = Told { source: source(node, &fields)?, is_text: is_text?, default: default? };
    Some(Limit { most: most?, told: Some(told) })
}

/// Where it is said: exactly one place, which callers cannot choose.
fn source(node: &Node<'_>, fields: &Fields<'_>) -> Option<IdentitySource> {
    let kinds = [metadata::KIND.name, jwt_claim::KIND.name];
    let (kind, value) = match kinds.map(|kind| fields.get(kind)) {
        [Some(value), None] => (metadata::KIND.name, value),
        [None, Some(value)] => (jwt_claim::KIND.name, value),
        found => {
            let count = found.iter().flatten().count();
            let kinds = kinds.join(", ");
            node.problem(format!("found {count} places, allowed: exactly one of {kinds}"));
            return None;
        }
    };
    let payload = fields.get("payload");
    match payload {
        Some(payload) if kind == metadata::KIND.name => {
            payload.key_problem("means nothing without `jwt_claim`".into());
            return None;
        }
        None if kind == jwt_claim::KIND.name => {
            let allowed = "required, allowed: the `payload_in_metadata` of jwt_authn";
            node.missing_problem("payload", allowed.into());
            return None;
        }
        _ => {}
    }
    let options = payload.map(|node| ("payload".into(), node.tree().clone()));
    let options = options.into_iter().collect();
    let source = IdentitySource { kind, value: value.tree().clone(), options };
    if let Err(mistakes) = identity::build(&source) {
        for mistake in mistakes {
            node.descend(&mistake.key).problem(mistake.message);
        }
        return None;
    }
    Some(source)
}
