//! `rpu` of a rule: a number, or its source in trusted data.

use super::cost::{METADATA, TYPE, TYPES};
use crate::conditions::PAYLOAD;
use crate::fields::Fields;
use crate::mapping::Allowed::{Either, Whole};
use crate::mapping::{Mapping, mapping, optional, required};
use crate::native;
use crate::node::Node;
use crate::values::{TEXT, TEXTS};
use diana_policy::MAX_PERMITS;
use diana_policy::tree::Tree;
use diana_policy::{IdentitySource, NumberForm, NumberSource};
use diana_request::identity::{self, jwt_claim, metadata};

pub(super) static LIMIT: Mapping = mapping(
    "rpu_source",
    "a mapping such as `{metadata: [plans, rpu], default: 10, max: 5000}`",
    &[
        optional("metadata", METADATA),
        optional("jwt_claim", Either(&[TEXT, TEXTS])),
        optional("payload", PAYLOAD),
        optional("payload_header", TEXT),
        optional("type", TYPE),
        required("default", Whole(0, MAX_PERMITS)),
        required("max", Whole(1, MAX_PERMITS)),
    ],
);

/// The `rpu` of a rule.
pub struct LimitValue {
    /// Permits per unit, or the maximum of the source.
    pub most: u64,
    /// The source, if there is one.
    pub source: Option<NumberSource>,
}

/// Reads `rpu`.
pub fn read(rule: &Fields<'_>) -> Option<LimitValue> {
    let node = rule.require("rpu")?;
    if !matches!(node.tree(), Tree::Map(_)) {
        return Some(LimitValue { most: rule.number("rpu")?, source: None });
    }
    let fields = rule.mapping("rpu")?;
    let most = fields.number("max");
    let default = fields.number_up_to("default", most.unwrap_or(u64::MAX));
    let form = fields.choice("type", TYPES).unwrap_or(NumberForm::Number);
    let source = NumberSource { source: source(node, &fields)?, form, default: default? };
    Some(LimitValue { most: most?, source: Some(source) })
}

/// The source in trusted data: exactly one, which clients cannot choose.
pub(crate) fn source(node: &Node<'_>, fields: &Fields<'_>) -> Option<IdentitySource> {
    let (kind, value) = fields.only_one_of(&[metadata::KIND.name, jwt_claim::KIND.name])?;
    let is_claim = kind == jwt_claim::KIND.name;
    let keys = ["payload", "payload_header"];
    let given: Vec<_> = keys.iter().filter_map(|key| Some((*key, fields.get(key)?))).collect();
    if let ([(_, node), ..], false) = (given.as_slice(), is_claim) {
        node.key_problem("requires `jwt_claim`".into());
        return None;
    }
    if given.is_empty() && is_claim {
        fields.require("payload")?;
    }
    let options = given.iter().map(|(key, node)| ((*key).into(), node.tree().clone())).collect();
    let source = IdentitySource { kind, value: value.tree().clone(), options };
    native::check_number(node, &source);
    if let Err(mistakes) = identity::build(&source) {
        for mistake in mistakes {
            node.descend(&mistake.key).problem(mistake.message);
        }
        return None;
    }
    Some(source)
}
