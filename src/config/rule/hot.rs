//! `hot` of a rule.

use crate::actors::{self, ActorSources};
use crate::fields::Fields;
use crate::headers;
use crate::headers::MARKER;
use crate::mapping::Allowed::{Duration, Flag, Whole};
use crate::mapping::{Mapping, mapping, optional, required};
use diana_policy::Hot;
use diana_policy::time::SECOND;

pub(super) static HOT: Mapping = mapping(
    "hot",
    "a mapping such as `{over: 1000, per: 10s, header: x-hot-key}`",
    &[
        required("over", Whole(1, 1_000_000_000)),
        // A shorter period would end before the workers have exchanged their counts.
        required("per", Duration(SECOND, 3600 * SECOND)),
        optional("header", MARKER),
        optional("top", Whole(1, 100)),
        optional("reveal", Flag),
    ],
);

/// Reads `hot`. `is_all` is true for a rule for `all`.
pub fn read(rule: &Fields<'_>, is_all: bool, actors: &[ActorSources]) -> Option<Hot> {
    if let (Some(node), true) = (rule.get("hot"), is_all) {
        node.key_problem(
            "not allowed with `actor: all`, which is a single caller; remove it".into(),
        );
        return None;
    }
    let fields = rule.mapping("hot")?;
    let (over, per) = (fields.number("over"), fields.number("per"));
    let header = headers::marker(&fields, "header");
    if let (Some(header), Some(node)) = (&header, fields.get("header")) {
        actors::refuse_actor_header(actors, header, node);
    }
    let top = fields.number("top").unwrap_or(10);
    let reveal = fields.flag("reveal", false);
    Some(Hot { over: over?, per: per?, header, top, reveal })
}
