//! Conditions on the presence of a value, where rules skip requests without a caller.

use super::about::{About, Advised, named};
use diana_policy::port::Property;
use diana_policy::tree::Tree;
use diana_policy::{
    Absent, Condition, ConditionBlock, ConditionField, IdentitySource, Limit, Match, Policy, Rule,
    Test,
};

const AUTHORIZATION: &str = "authorization";

/// Rules that count no request.
pub fn find_idle(about: &About<'_>) -> Vec<Advised> {
    let message = "these rules count no request: their entry matches only requests without a value, their actor reads only that \
                   value, and `absent: skip` skips requests without a caller";
    named(message, rules(about.policy, |limit, rule| is_idle(about.policy, limit, rule)))
}

/// Rules that leave requests unlimited.
pub fn find_leaky(about: &About<'_>) -> Vec<Advised> {
    let policy = about.policy;
    let message = "these rules skip requests without a caller (`absent: skip`), and `unless` or `match` excludes the same requests \
                   from another entry because a value is present, so no rule limits them; write `absent: share` or `deny`, or test \
                   the value that the actor reads";
    // Few entries have such conditions, and there may be thousands of rules.
    let conditional: Vec<&Limit> =
        policy.limits.iter().filter(|limit| excluded(&limit.matcher).next().is_some()).collect();
    if conditional.is_empty() {
        return Vec::new();
    }
    named(message, rules(policy, |limit, rule| is_leaky(policy, &conditional, limit, rule)))
}

/// The rules with `absent: skip` for which `is` returns true.
fn rules(policy: &Policy, is: impl Fn(&Limit, &Rule) -> bool) -> impl Iterator<Item = &Rule> {
    let rules =
        policy.limits.iter().flat_map(|limit| limit.rules.iter().map(move |it| (limit, it)));
    let skipping = rules.filter(|(_, rule)| rule.absent == Absent::Skip);
    skipping.filter(move |(limit, rule)| is(limit, rule)).map(|(_, it)| it)
}

/// Returns true if the entry leaves only requests in which the actor finds no caller.
fn is_idle(policy: &Policy, limit: &Limit, rule: &Rule) -> bool {
    let reads_only = |sources: &[IdentitySource], field: &ConditionField| {
        !sources.is_empty() && sources.iter().all(|source| field_of(source).as_ref() == Some(field))
    };
    excluded(&limit.matcher)
        .any(|field| parts(policy, rule).any(|sources| reads_only(sources, field)))
}

/// Returns true if an entry leaves requests with a value to this rule, and the rule's actor may
/// find no caller in them. No other rule counts all of them.
fn is_leaky(policy: &Policy, conditional: &[&Limit], limit: &Limit, rule: &Rule) -> bool {
    let is_without = |limit: &Limit, field| excluded(&limit.matcher).any(|it| it == field);
    let inner = |other| {
        let is_inner = is_covered(limit, other);
        (is_inner || is_covered(other, limit)).then_some(if is_inner { limit } else { other })
    };
    let others = conditional.iter().filter_map(|&other| Some((other, inner(other)?)));
    let mut fields =
        others.flat_map(|(other, inner)| excluded(&other.matcher).map(move |field| (inner, field)));
    fields.any(|(inner, field)| {
        let is_for = required(&limit.matcher).any(|it| it == field)
            || parts(policy, rule).flatten().any(|source| depends_on(source, field));
        let counts = |rule: &Rule| {
            !rule.shadow && (rule.absent != Absent::Skip || finds_caller(policy, rule, field))
        };
        let is_open = |limit: &&Limit| {
            let any = &limit.matcher.any;
            limit.matcher.unless.is_empty()
                && (any.is_empty() || required(&limit.matcher).any(|it| it == field))
        };
        let mut over =
            policy.limits.iter().filter(|outer| is_covered(inner, outer)).filter(is_open);
        is_for
            && !is_without(limit, field)
            && !finds_caller(policy, rule, field)
            && !over.any(|outer| outer.rules.iter().any(counts))
    })
}

/// Returns true if another entry covers all paths of an entry.
fn is_covered(inner: &Limit, outer: &Limit) -> bool {
    inner.urls.iter().all(|url| outer.urls.iter().any(|above| above.covers(url.path())))
}

/// Fields without a value in every request of an entry.
fn excluded(matcher: &Match) -> impl Iterator<Item = &ConditionField> {
    let single = |block: &ConditionBlock| {
        block.methods.is_empty()
            && block.hosts.is_empty()
            && block.addresses.is_empty()
            && block.routes.is_empty()
    };
    let unless = matcher.unless.iter().filter(move |block| single(block)).filter_map(|block| {
        let [condition] = block.values.as_slice() else { return None };
        (condition.test == Test::Present(true)).then_some(&condition.field)
    });
    unless.chain(of_match(&matcher.any, false))
}

/// Fields with a value in every request of an entry.
fn required(matcher: &Match) -> impl Iterator<Item = &ConditionField> {
    of_match(&matcher.any, true)
}

/// Fields of a `match` with one block that requires this presence.
fn of_match(any: &[ConditionBlock], is_present: bool) -> impl Iterator<Item = &ConditionField> {
    let conditions: &[Condition] = if let [block] = any { &block.values } else { &[] };
    conditions.iter().filter(move |it| it.test == Test::Present(is_present)).map(|it| &it.field)
}

/// Returns true if the actor finds a caller in each request with this value.
fn finds_caller(policy: &Policy, rule: &Rule, field: &ConditionField) -> bool {
    parts(policy, rule).all(|sources| {
        sources.iter().any(|it| it.kind == "client_address" || field_of(it).as_ref() == Some(field))
    })
}

/// Returns true if a source can only find a value if the field has one.
fn depends_on(source: &IdentitySource, field: &ConditionField) -> bool {
    let is_token =
        *field == ConditionField::Header(AUTHORIZATION.into()) && source.kind == "jwt_claim";
    is_token || field_of(source).as_ref() == Some(field)
}

/// The sources of each part of a rule's actor.
fn parts<'p>(policy: &'p Policy, rule: &'p Rule) -> impl Iterator<Item = &'p [IdentitySource]> {
    let actors = rule.actor.iter().filter_map(|&actor| policy.actors.get(actor));
    actors.map(|actor| actor.sources.as_slice())
}

/// The field that a source reads, if conditions can read it, too.
fn field_of(source: &IdentitySource) -> Option<ConditionField> {
    let text = source.value.text();
    let property = |path: &[&str]| {
        ConditionField::Property(Property::new(&[&["metadata", "filter_metadata"], path].concat()))
    };
    match (source.kind, text, &source.value) {
        ("header", Some(name), _) => Some(ConditionField::Header(name.to_ascii_lowercase())),
        ("query", Some(name), _) => Some(ConditionField::Query(name.into())),
        ("cookie", Some(name), _) => Some(ConditionField::Cookie(name.into())),
        ("metadata", _, Tree::List(path)) => {
            Some(property(&path.iter().filter_map(Tree::text).collect::<Vec<_>>()))
        }
        ("jwt_claim", _, claim) => {
            let (_, payload) = source.options.iter().find(|(key, _)| key == "payload")?;
            let claim: Vec<&str> = match claim {
                Tree::List(names) => names.iter().filter_map(Tree::text).collect(),
                name => name.text().into_iter().collect(),
            };
            let below = ["envoy.filters.http.jwt_authn", payload.text()?];
            Some(property(&[&below, claim.as_slice()].concat()))
        }
        _ => None,
    }
}
