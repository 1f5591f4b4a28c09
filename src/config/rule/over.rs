//! `over` of a rule: a mark in place of a refusal.

use crate::actors::{self, ActorSources};
use crate::fields::Fields;
use crate::headers::{self, MARKER, VALUE};
use crate::mapping::{Mapping, mapping, required};
use diana_policy::{Over, Plans, Quota};

pub(super) static OVER: Mapping = mapping(
    "over",
    "a mapping such as `{mark: x-tier, value: spill}`",
    &[required("mark", MARKER), required("value", VALUE)],
);

/// Reads `over`.
pub fn read(rule: &Fields<'_>, actors: &[ActorSources]) -> Option<Over> {
    let fields = rule.mapping("over")?;
    let (mark, value) = (headers::marker(&fields, "mark"), fields.text("value"));
    if let (Some(mark), Some(node)) = (&mark, fields.get("mark")) {
        actors::refuse_actor_header(actors, mark, node);
    }
    // Nor may it lift the limit of another rule.
    for node in ["ban", "replaces"].into_iter().filter_map(|key| rule.get(key)) {
        node.key_problem(
            "not allowed with `over`, which refuses no request; remove one of the two".into(),
        );
    }
    Some(Over { mark: mark?, value: value?.into() })
}

/// Reports `over` of a rule that holds requests, by its own quota or that of a plan.
pub fn check(rule: &Fields<'_>, algo: &str, quota: &Quota, plans: Option<&Plans>) {
    let holds = |quota: &Quota| quota.max_delay.is_some_and(|delay| delay > 0);
    let listed = plans.map(Plans::listed).unwrap_or_default();
    let by_plan = listed.iter().filter_map(|plan| plan.quota.as_ref()).any(holds);
    if rule.get("over").is_some() && (algo == "LB" || holds(quota) || by_plan) {
        let message = "not allowed with `max_delay` or `algo: LB`, which hold requests; use TB without `max_delay`, W or SW";
        rule.report("over", message.into());
    }
}
