//! `cost` of a rule: a number, the source of one, or the number for each value of a source.

use super::settling;
use crate::actors;
use crate::actors::{SOURCE, SOURCES};
use crate::fields::Fields;
use crate::headers::NAME as HEADER;
use crate::mapping::Allowed::{self, Choice, Either, List, Map, Named, Whole};
use crate::mapping::{Choices, Mapping, mapping, optional, required, words};
use crate::node::Node;
use crate::values;
use crate::values::TEXT;
use diana_policy::MAX_PERMITS;
use diana_policy::tree::Tree;
use diana_policy::{
    ChosenCost, CostSource, IdentitySource, NumberForm, NumberSource, ResponseCost,
};
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

/// A cost that a value of the request chooses.
pub const CHOSEN_COST: Allowed = Map(&CHOSEN);

static CHOSEN: Mapping = mapping(
    "chosen_cost",
    "a mapping such as `{by: {header: x-operation}, of: {mutation: 10}, default: 1}`",
    &[
        required("by", Either(&[Map(&SOURCE), SOURCES])),
        required(
            "of",
            Named("a mapping such as `{mutation: 10, subscription: 20}`", &COST_OF_VALUE),
        ),
        optional("default", COST_OF_VALUE),
    ],
);

const COST_OF_VALUE: Allowed = Whole(1, MAX_PERMITS);

/// Maximum number of listed values.
const MOST_VALUES: usize = 1_000;

/// Maximum length of a listed value in bytes.
const LONGEST_VALUE: usize = 255;

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
    pub cost_source: Option<CostSource>,
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
        tree if tree.get("response").is_some() => return settling::cost(node),
        tree if tree.get("by").or(tree.get("of")).is_some() => return chosen(node),
        Tree::Map(_) => {}
        _ => return rule.number("cost").map(|most| Cost { most, ..Cost::ONE }),
    }
    let fields = rule.mapping("cost")?;
    let most = fields.number("max");
    let default = match fields.has("default") {
        true => fields.number_up_to("default", most.unwrap_or(u64::MAX)),
        false => Some(1),
    };
    let number = number(&fields, default)?;
    Some(Cost { most: most?, cost_source: Some(CostSource::Number(number)), response: None })
}

/// The source of a number in requests. Exactly one must be given.
pub(super) fn number(fields: &Fields<'_>, default: Option<u64>) -> Option<NumberSource> {
    let typed = fields.has("typed") && fields.flag("typed", false);
    let form = match fields.choice("type", TYPES).unwrap_or(NumberForm::Number) {
        NumberForm::Text { .. } => NumberForm::Text { typed },
        _ if typed => NumberForm::Typed,
        _ => NumberForm::Number,
    };
    let of_metadata = ["typed", "type"].into_iter().filter(|key| fields.has(key));
    if fields.get("metadata").is_none() {
        let written = of_metadata.filter_map(|key| fields.get(key));
        written.for_each(|node| node.key_problem("requires `metadata`".into()));
    }
    let kinds = [header::KIND.name, query::KIND.name, metadata::KIND.name];
    let (kind, value) = fields.only_one_of(&kinds)?;
    let is_metadata = kind == metadata::KIND.name;
    let typed = (is_metadata && typed).then(|| (metadata::TYPED.into(), Tree::Bool(true)));
    let options = typed.into_iter().collect();
    let source = built(value, IdentitySource { kind, value: value.tree().clone(), options })?;
    let form = if is_metadata { form } else { NumberForm::Text { typed: false } };
    Some(NumberSource { source, form, default: default? })
}

/// Reads a cost that a value of the request chooses.
fn chosen(node: &Node<'_>) -> Option<Cost> {
    let fields = Fields::read(node, &CHOSEN_COST)?;
    let by = fields.node("by").map(|by| {
        let built = match by.tree() {
            Tree::Map(_) => actors::source(by).into_iter().collect(),
            _ => actors::sources(by),
        };
        if built.iter().any(|(_, source)| source.path_param().is_some()) {
            by.problem("`path_param` is for actors; write another entry for these paths".into());
        }
        built.into_iter().map(|(wanted, _)| wanted).collect::<Vec<_>>()
    });
    let default = match fields.has("default") {
        true => fields.number("default"),
        false => Some(1),
    };
    let of = fields.node("of")?;
    let pairs = of.pairs(&fields.allowed("of"))?;
    if !(1..=MOST_VALUES).contains(&pairs.len()) {
        of.problem(format!("found {} values, allowed: 1 … {MOST_VALUES}", pairs.len()));
        return None;
    }
    let costs = pairs.into_iter().map(|(name, node)| {
        if !(1..=LONGEST_VALUE).contains(&name.len()) {
            node.key_problem(format!("not a valid value, allowed: 1 … {LONGEST_VALUE} bytes"));
            return None;
        }
        Some((name.to_owned(), values::number(&node, &COST_OF_VALUE)?))
    });
    // Collects all of them first, so that each reports its problems.
    let costs: Vec<_> = costs.collect();
    let of = costs.into_iter().collect::<Option<Vec<_>>>()?;
    let (by, default) = (by.filter(|by| !by.is_empty())?, default?);
    let most = of.iter().map(|(_, cost)| *cost).chain([default]).max()?;
    let source = CostSource::Chosen(ChosenCost { by, of, default });
    Some(Cost { most, cost_source: Some(source), response: None })
}

/// A source without mistakes. Reports them at `value`.
fn built(value: &Node<'_>, source: IdentitySource) -> Option<IdentitySource> {
    if let Err(mistakes) = identity::build(&source) {
        mistakes.into_iter().for_each(|mistake| value.problem(mistake.message));
        return None;
    }
    Some(source)
}
