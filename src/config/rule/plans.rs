//! Converts `plans` for a rule: each becomes a quota.

use std::sync::Arc;

use super::algo::{RuleAlgorithm, options};
use crate::context::Context;
use crate::fields::Fields;
use crate::instant;
use crate::node::Node;
use crate::plans::{self, PLAN, PlanDraft, Written};
use diana_algorithm::{Capabilities, Conflict, Leasing};
use diana_policy::time::Micros;
use diana_policy::tree::Tree;
use diana_policy::{MAX_DRAINED, Plan, PlanKind, Plans, Quota};

/// Maximum lifetime of a value in Redis, in ticks.
const LONGEST: u128 = 1 << 50;

/// Reads the plans of a rule. Sets the duration for which usage counts under any of its plans in
/// the quota of `limiter`.
pub fn read(
    rule: &Fields<'_>,
    limiter: Option<&mut RuleAlgorithm>,
    actor: &[usize],
    context: &Context<'_>,
) -> Option<Arc<Plans>> {
    let Some(node) = rule.get("plans") else {
        let limiter = limiter?;
        let (source, month_starts) = (limiter.limit_source.take(), limiter.month_source.take());
        if source.is_none() && month_starts.is_none() {
            return None;
        }
        let Some(source) = source else {
            let kind = PlanKind::Listed { by: None, of: Vec::new(), is_other_unlimited: false };
            return Some(Arc::new(Plans { own: limiter.quota, kind, month_starts }));
        };
        if source.default > 0 {
            report_default(rule, Quota { rpu: source.default, ..limiter.quota }, limiter);
        }
        // The `default` determines the lifetime of a caller's state. A caller with a lower `rpu`
        // has a longer lifetime, where that matters.
        let slowest = if source.default > 0 { source.default } else { limiter.quota.rpu };
        let own = lasting(limiter.quota, [limiter.quota].iter(), slowest, limiter);
        limiter.quota = own;
        return Some(Arc::new(Plans { own, kind: PlanKind::FromData(source), month_starts }));
    };
    if matches!(rule.get("rpu").map(Node::tree), Some(Tree::Map(_))) {
        node.key_problem(
            "not allowed with an `rpu` that is read from data; use one of the two".into(),
        );
        return None;
    }
    plans::with(node, &context.plans, |draft| {
        let is_chosen = chosen(node, draft, actor, context)?;
        if let Some(other) = draft.other.as_ref().filter(|_| is_chosen) {
            report_unlimited(other);
        }
        let limiter = limiter?;
        let all = draft.of.iter().map(|plan| of(plan, limiter, is_chosen));
        let all: Vec<_> = all.collect();
        let mut of = all.into_iter().collect::<Option<Vec<Plan>>>()?;
        let listed = || of.iter().filter_map(|plan| plan.quota.as_ref());
        if listed().any(|quota| quota.rpu.max(quota.cost) > MAX_DRAINED) {
            limiter.widen();
        }
        let quotas = || listed().chain([&limiter.quota]);
        let slowest = quotas().map(|quota| quota.rpu).filter(|rpu| *rpu > 0).min().unwrap_or(0);
        let keep = |quota| lasting(quota, quotas(), slowest, limiter);
        let own = keep(limiter.quota);
        let kept: Vec<_> = of.iter().map(|plan| plan.quota.map(keep)).collect();
        of.iter_mut().zip(kept).for_each(|(plan, quota)| plan.quota = quota);
        limiter.quota = own;
        let by = draft.by.as_ref().map(|(by, _)| by.clone());
        let month_starts = limiter.month_source.take();
        Some(Arc::new(Plans {
            own,
            kind: PlanKind::Listed { by, of, is_other_unlimited: draft.other.is_some() },
            month_starts,
        }))
    })
}

/// Reports conflicts of the `default` of `rpu` with the rule's other keys, as for a plan.
fn report_default(rule: &Fields<'_>, quota: Quota, limiter: &RuleAlgorithm) {
    let Some(node) = rule.get("rpu") else { return };
    let Err(conflicts) = (limiter.entry.build)(&quota) else { return };
    for Conflict { key, message, .. } in conflicts {
        let message = format!("conflicts with the rule's `{key}`: {message}");
        node.descend("default").problem(message);
    }
}

/// Returns true if clients choose the plan.
fn chosen(
    node: &Node<'_>,
    draft: &PlanDraft<'_>,
    actor: &[usize],
    context: &Context<'_>,
) -> Option<bool> {
    if let Some((_, is_chosen)) = draft.by {
        return Some(is_chosen);
    }
    let [actor] = actor else {
        let message = "requires `by`, since the callers of this rule have no single value that could select a plan; allowed: a \
                       list of sources such as `[{jwt_claim: plan, payload: p}]`";
        node.problem(message.into());
        return None;
    };
    Some(context.actors.get(*actor).is_some_and(|known| known.is_caller_chosen))
}

/// A quota with the duration for which usage counts, determined by the slowest plan.
fn lasting<'q>(
    quota: Quota,
    all: impl Iterator<Item = &'q Quota> + Clone,
    slowest: u64,
    limiter: &RuleAlgorithm,
) -> Quota {
    let Capabilities { leasing, .. } = (limiter.entry.capabilities)(&quota);
    let quota = Quota { is_wide: limiter.quota.is_wide, ..quota };
    let is_even =
        all.clone().all(|quota| quota.rpu == slowest && quota.burst == limiter.quota.burst);
    if leasing == Leasing::Window || limiter.is_in_flight() || is_even {
        return quota;
    }
    let most = all.clone().map(|quota| quota.burst.unwrap_or(quota.rpu).max(quota.cost)).max();
    let fastest = all.clone().map(|quota| quota.rpu).max();
    let held = all.filter_map(|quota| quota.max_delay).max().unwrap_or(0);
    let drains = u128::from(most.unwrap_or(0)) * u128::from(quota.period());
    let longest = drains.div_ceil(u128::from(slowest.max(1))).saturating_add(held.into());
    let longest = Micros::try_from(longest.min(LONGEST)).unwrap_or(Micros::MAX);
    Quota { slowest: Some(slowest), fastest, longest, ..quota }
}

/// Reports that clients may choose to have no limit.
fn report_unlimited(node: &Node<'_>) {
    let message = "found `unlimited`, but clients choose the plan themselves; allowed: numbers, or a `by` that clients cannot \
                   choose: a jwt_claim with `payload`, metadata, peer, client_address";
    node.problem(message.into());
}

/// Reads a plan.
fn of(plan: &Written<'_>, limiter: &RuleAlgorithm, is_chosen: bool) -> Option<Plan> {
    let name = plan.name.into();
    let Some(fields) = &plan.fields else {
        if is_chosen {
            report_unlimited(&plan.node);
            return None;
        }
        return Some(Plan { name, quota: None, until: None });
    };
    let until = match fields.has("until") {
        true => Some(instant::parse(fields.text("until")?)?),
        false => None,
    };
    let quota = match limiter.is_in_flight() {
        true => in_flight(fields, limiter.quota),
        false => numbers(fields, limiter),
    };
    Some(Plan { name, quota: Some(quota?), until })
}

fn in_flight(fields: &Fields<'_>, own: Quota) -> Option<Quota> {
    let others = PLAN.mapping().map(|plan| plan.names()).unwrap_or_default();
    let others = others.into_iter().filter(|key| !["in_flight", "until"].contains(key));
    let others: Vec<_> = others.filter_map(|key| fields.get(key)).collect();
    others.iter().for_each(|node| node.key_problem("not allowed with `in_flight`".into()));
    let limit = fields.number("in_flight")?;
    others.is_empty().then_some(Quota { rpu: limit, ..own })
}

fn numbers(fields: &Fields<'_>, limiter: &RuleAlgorithm) -> Option<Quota> {
    if let Some(node) = fields.get("in_flight") {
        node.key_problem("requires `in_flight` in the rule".into());
        return None;
    }
    let own = limiter.quota;
    let rpu = if fields.has("rpu") { fields.number("rpu") } else { Some(own.rpu) };
    let cost = reserve(fields, limiter);
    let (found, wrong) = options(fields, Some(limiter.entry));
    let (rpu, cost) = (rpu?, cost?);
    if !wrong.is_empty() {
        return None;
    }
    // If no request is admitted, the other keys of the rule have no meaning.
    let own = if rpu > 0 { own } else { Quota::new(own.unit, 0) };
    let quota = Quota {
        rpu,
        cost,
        burst: found.burst.or(own.burst),
        max_delay: found.max_delay.or(own.max_delay),
        max_queue: found.max_queue.or(own.max_queue),
        ..own
    };
    if let Err(conflicts) = (limiter.entry.build)(&quota) {
        conflicts.into_iter().for_each(|conflict| report_conflict(fields, conflict));
        return None;
    }
    Some(quota)
}

/// The cost of a request under a plan.
fn reserve(fields: &Fields<'_>, limiter: &RuleAlgorithm) -> Option<u64> {
    let own = limiter.quota.cost;
    if !fields.has("cost") {
        return Some(own);
    }
    let fields = fields.mapping("cost")?;
    let node = fields.node("reserve")?;
    let settling = limiter.settling.as_ref();
    let Some(response) = settling.and_then(|settling| settling.response_cost.as_ref()) else {
        node.key_problem("requires `cost.response` in the rule".into());
        return None;
    };
    if limiter.cost_source.is_some() {
        node.key_problem("not allowed where `reserve` of the rule is read from data".into());
        return None;
    }
    if settling.is_some_and(|settling| settling.reserve == 0) {
        let message = "not allowed where `reserve` of the rule is 0, which only checks requests";
        node.key_problem(message.into());
        return None;
    }
    fields.number_up_to("reserve", response.most)
}

/// Reports a conflict of a plan at one of its own keys.
fn report_conflict(fields: &Fields<'_>, Conflict { key, with, message }: Conflict) {
    let found = [key].into_iter().chain(with.iter().copied()).find(|key| fields.has(key));
    match found {
        Some(found) if found == key => fields.report(found, message),
        Some(found) => {
            fields.report(found, format!("conflicts with the plan's `{key}`: {message}"))
        }
        None => fields.report("rpu", message),
    }
}
