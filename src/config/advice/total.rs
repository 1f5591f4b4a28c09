//! Rules that refuse every request, and settings that exempt every request.

use ipnet::IpNet;

use super::about::{About, Advised, named};
use diana_policy::{
    Absent, Condition, ConditionBlock, Except, Limit, PlanKind, Plans, Prefix, Rule, Test,
};

/// Keys of `except` that exempt every request, of the document, and of entries and rules.
pub fn find_exempt(about: &About<'_>) -> Vec<Advised> {
    if about.is_replaceable() {
        return Vec::new();
    }
    let policy = about.policy;
    let of_all = exempting(&policy.except, &[b"/"])
        .map(|key| format!("`except.{key}` exempts every request, so no request is limited"));
    let mut found: Vec<Advised> = of_all.map(|message| (message, Vec::new())).collect();
    for key in ["paths", "addresses", "headers"] {
        let is_exempt = |limit: &Limit, rule: &Rule| {
            let paths: Vec<&[u8]> = limit.urls.iter().map(Prefix::path).collect();
            let both = [&limit.except, &rule.except];
            both.iter().any(|except| exempting(except, &paths).any(|it| it == key))
        };
        let exempt = policy
            .limits
            .iter()
            .flat_map(|limit| limit.rules.iter().filter(move |rule| is_exempt(limit, rule)));
        found
            .extend(named(&format!("`except.{key}` exempts every request of these rules"), exempt));
    }
    found
}

/// Rules that refuse every request.
pub fn find_closed(about: &About<'_>) -> Vec<Advised> {
    if about.is_replaceable() || !about.policy.except.any.is_empty() {
        return Vec::new();
    }
    let limits = about.policy.limits.iter().filter(|limit| is_for_all(limit));
    let is_closed = |rule: &&Rule| refuses_all(about, rule) && !about.is_replaced(rule);
    let rules = limits.flat_map(|limit| &limit.rules).filter(is_closed);
    named("these rules refuse every request", rules)
}

/// The keys of `except` which exempt every request below these paths.
fn exempting(except: &Except, paths: &[&[u8]]) -> impl Iterator<Item = &'static str> + use<> {
    let is_exempt = |path: &&[u8]| except.paths.iter().any(|prefix| prefix.covers(path));
    let keys = [
        ("paths", paths.iter().all(is_exempt)),
        ("addresses", except.any.iter().any(|block| are_all(&block.addresses))),
        ("headers", except.any.iter().flat_map(|block| &block.values).any(always_passes)),
    ];
    keys.into_iter().filter(|(_, is_total)| *is_total).map(|(key, _)| key)
}

/// Returns true if these networks contain all IPv4 addresses, or all IPv6 addresses.
fn are_all(networks: &[IpNet]) -> bool {
    IpNet::aggregate(&networks.to_vec()).iter().any(|network| network.prefix_len() == 0)
}

/// Returns true if a block of `unless` excludes every request.
pub fn always_holds(block: &ConditionBlock) -> bool {
    block.methods.is_empty()
        && block.hosts.is_empty()
        && (block.addresses.is_empty() || are_all(&block.addresses))
        && block.values.iter().all(always_passes)
        && block.routes.is_empty()
}

/// Returns true if every value passes, and an absent one, too: `not: ""`.
fn always_passes(condition: &Condition) -> bool {
    match &condition.test {
        Test::Not(text) => text.is_empty(),
        Test::Exact(text) => condition.is_negated && text.is_empty(),
        Test::In(texts) => condition.is_negated && texts.iter().all(String::is_empty),
        _ => false,
    }
}

/// Returns true if an entry applies to every request.
fn is_for_all(limit: &Limit) -> bool {
    limit.matcher.is_empty()
        && limit.except.is_empty()
        && limit.urls.iter().any(|url| url.path() == b"/")
}

/// Returns true if a rule refuses every request of its entry.
fn refuses_all(about: &About<'_>, rule: &Rule) -> bool {
    let is_closed = |plans: &Plans| match &plans.kind {
        PlanKind::Listed { of, is_other_unlimited, .. } => {
            let mut quotas = of.iter().map(|plan| plan.quota.as_ref());
            !is_other_unlimited && quotas.all(|quota| quota.is_some_and(|quota| quota.rpu == 0))
        }
        PlanKind::FromData(_) => false,
    };
    let has_caller = rule.absent != Absent::Skip || about.actors_of(rule).all(|it| it.is_address);
    rule.quota.rpu == 0
        && rule.plans.as_deref().is_none_or(is_closed)
        && has_caller
        && rule.enforce == 100
        && !rule.shadow
        && rule.over.is_none()
        && rule.except.is_empty()
}
