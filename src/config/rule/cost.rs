//! `cost` of a rule: a number, or the source of one.

use super::settling;
use crate::fields::Fields;
use crate::headers::NAME as HEADER;
use crate::mapping::Allowed::{self, Choice, List, Whole};
use crate::mapping::{Choices, Mapping, mapping, optional, required, words};
use crate::node::Node;
use crate::table::TEXT;
use diana_policy::MAX_PERMITS;
use diana_policy::tree::Tree;
use diana_policy::{IdentitySource, NumberForm, NumberSource, ResponseCost};
use diana_request::identity::{self, header, metadata, query};

pub(super) static COST: Mapping = mapping(
    "cost",
    "a mapping such as `{header: x-cost, default: 1, max: 1000}`",
    &[
        optional("header", HEADER),
        optional("query", TEXT),
        optional("metadata", METADATA),
        optional("type", TYPE),
        optional("default", Whole(1, MAX_PERMITS)),
        required("max", Whole(1, MAX_PERMITS)),
    ],
);

/// The encoding of a number that is not typed.
pub const TYPES: Choices<NumberForm> =
    &[("number", NumberForm::Number), ("text", NumberForm::Text { typed: false })];

pub(crate) const TYPE: Allowed = Choice(|| words(TYPES));

pub(crate) const METADATA: Allowed = List("a list of a namespace and at least one key", &TEXT);

/// The cost of requests.
pub struct Cost {
    /// The cost of each request, or the maximum if it varies.
    pub most: u64,
    /// The source of the cost, or of the permits to reserve, in requests, if there is one.
    pub cost_source: Option<NumberSource>,
    /// The permits to reserve, and the source of the usage in the response, if there is one.
    pub response: Option<(u64, ResponseCost)>,
}

impl Cost {
    /// A cost of one permit.
    pub const ONE: Cost = Cost { most: 1, cost_source: None, response: None };
}

/// Reads `cost`. The default is one permit.
pub fn read(rule: &Fields<'_>) -> Option<Cost> {
    let Some(node) = rule.get("cost") else { return Some(Cost::ONE) };
    match node.tree() {
        Tree::Map(pairs) if pairs.iter().any(|(key, _)| key == "response") => {
            return settling::cost(node);
        }
        Tree::Map(_) => {}
        _ => return rule.number("cost").map(|most| Cost { most, ..Cost::ONE }),
    }
    let fields = rule.mapping("cost")?;
    let most = fields.number("max");
    let default = match fields.has("default") {
        true => fields.number_up_to("default", most.unwrap_or(u64::MAX)),
        false => Some(1),
    };
    let form = fields.choice("type", TYPES).unwrap_or(NumberForm::Number);
    if let (Some(node), None) = (fields.get("type"), fields.get("metadata")) {
        node.key_problem("requires `metadata`".into());
    }
    let source = source(&fields)?;
    let is_metadata = source.kind == metadata::KIND.name;
    let form = if is_metadata { form } else { NumberForm::Text { typed: false } };
    let number = NumberSource { source, form, default: default? };
    Some(Cost { most: most?, cost_source: Some(number), response: None })
}

/// The source of the cost in requests. Exactly one must be given.
fn source(fields: &Fields<'_>) -> Option<IdentitySource> {
    let kinds = [header::KIND.name, query::KIND.name, metadata::KIND.name];
    let (kind, value) = fields.only_one_of(&kinds)?;
    built(value, IdentitySource { kind, value: value.tree().clone(), options: Vec::new() })
}

/// A source without mistakes. Reports them at `value`.
pub(super) fn built(value: &Node<'_>, source: IdentitySource) -> Option<IdentitySource> {
    if let Err(mistakes) = identity::build(&source) {
        mistakes.into_iter().for_each(|mistake| value.problem(mistake.message));
        return None;
    }
    Some(source)
}
