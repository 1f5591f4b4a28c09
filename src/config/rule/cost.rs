//! `cost` of a rule: a number, or where requests say what they take.

use super::settling;
use crate::fields::Fields;
use crate::node::Node;
use diana_core::cost::Teller;
use diana_core::identity::{header, metadata};
use diana_core::policy::{Answered, IdentitySource, MAX_PERMITS, Told};
use diana_core::tree::Tree;

const WHAT: &str = "a whole number, or a mapping such as `{header: x-cost, default: 1, max: 1000}`";
/// Its keys.
pub const KEYS: &[&str] = &["header", "metadata", "type", "default", "max"];
const TYPES: &[&str] = &["number", "text"];

/// What requests take.
pub struct Cost {
    /// Permits that each takes, or takes at most.
    pub most: u64,
    /// Where they say it, if they do.
    pub told: Option<Told>,
    /// Permits to be reserved, and where the response says what was used, if it does.
    pub answered: Option<(u64, Answered)>,
}

impl Cost {
    /// The same for all.
    pub const ONE: Cost = Cost { most: 1, told: None, answered: None };
}

/// Reads `cost`, by default one permit.
#[inline(never)]
pub fn read(rule: &Fields<'_>) -> Option<Cost> {
    let Some(node) = rule.get("cost") else { return Some(Cost::ONE) };
    match node.tree() {
        Tree::Map(pairs) if pairs.iter().any(|(key, _)| key == "response") => {
            let answered = settling::cost(node)?;
            return Some(Cost { most: answered.0.max(1), told: None, answered: Some(answered) });
        }
        Tree::Map(_) => {}
        _ => return node.whole(1, MAX_PERMITS).map(|most| Cost { most, ..Cost::ONE }),
    }
    let fields = Fields::read(node, WHAT, KEYS)?;
    let most = fields.require("max", &format!("a whole number, 1 … {MAX_PERMITS}"));
    let most = most.and_then(|node| node.whole(1, MAX_PERMITS));
    let default = match fields.get("default") {
        Some(node) => node.whole(1, most.unwrap_or(MAX_PERMITS)),
        None => Some(1),
    };
    let is_text = is_text(&fields);
    let source = source(node, &fields);
    let told = Told { source: source?, is_text: is_text?, default: default? };
    Some(Cost { most: most?, told: Some(told), answered: None })
}

/// Whether metadata holds the cost as text.
fn is_text(fields: &Fields<'_>) -> Option<bool> {
    let Some(node) = fields.get("type") else { return Some(false) };
    if fields.get("metadata").is_none() {
        node.key_problem("means nothing without `metadata`".into());
        return None;
    }
    node.choice(TYPES, &TYPES.join(", ")).map(|chosen| chosen == 1)
}

/// Where requests say it: exactly one place.
fn source(node: &Node<'_>, fields: &Fields<'_>) -> Option<IdentitySource> {
    let kinds = [header::KIND.name, metadata::KIND.name];
    let (kind, value) = match kinds.map(|kind| fields.get(kind)) {
        [Some(value), None] => (header::KIND.name, value),
        [None, Some(value)] => (metadata::KIND.name, value),
        found => {
            let count = found.iter().flatten().count();
            let kinds = kinds.join(", ");
            node.problem(format!("found {count} places, allowed: exactly one of {kinds}"));
            return None;
        }
    };
    let source = IdentitySource { kind, value: value.tree().clone(), options: Vec::new() };
    let told = Told { source, is_text: false, default: 1 };
    if let Err(mistakes) = Teller::new(&told, 1) {
        mistakes.into_iter().for_each(|mistake| value.problem(mistake.message));
        return None;
    }
    Some(told.source)
}
