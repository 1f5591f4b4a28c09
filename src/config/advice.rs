//! Warnings about settings that are allowed and probably unintended.

pub mod empty;
mod large;
pub mod total;
mod wildcards;

use std::collections::BTreeSet;

use super::actors::ActorSources;
use diana_policy::names;
use diana_policy::time::Unit;
use diana_policy::{CostSource, Except, IdentitySource, Limit, PlanKind, Prefix, Rule, Scope};
use diana_request::identity::{self, header};

/// A setting that is allowed and probably unintended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The kind of the setting, by which operators accept the advice.
    pub id: &'static str,
    /// The setting, and how to fix it.
    pub message: String,
    /// The names of the rules concerned. Empty if it does not concern rules.
    pub rules: Vec<String>,
    /// Whether the filter applies the document differently from its text, so that `diana check`
    /// fails.
    pub is_mistake: bool,
}

impl Advice {
    /// Advice that does not concern rules, and that the filter applies as written.
    pub fn new(id: &'static str, message: impl Into<String>) -> Advice {
        Advice { id, message: message.into(), rules: Vec::new(), is_mistake: false }
    }

    /// Formats a line for the log.
    #[must_use]
    pub fn line(&self) -> String {
        let Advice { message, rules, .. } = self;
        if rules.is_empty() {
            return message.clone();
        }
        format!("{message}: {}", names::listed(rules))
    }
}

/// All advice about a valid document. `twins` are the fingerprints of rules that differ only by
/// their order.
pub fn lines(
    limits: &[Limit],
    actors: &[ActorSources],
    keys: usize,
    except: &Except,
    twins: &BTreeSet<u64>,
) -> Vec<Advice> {
    let mut lines: Vec<Advice> = actors.iter().flat_map(of_sources).collect();
    lines.extend(wildcards::advice(limits, except));
    lines.extend(large::advice(limits));
    let replaced = replaced(limits);
    let guards: Vec<&Limit> =
        limits.iter().filter(|limit| is_guard(limit, actors, &replaced)).collect();
    lines.extend(line(
        "chosen-key",
        "clients choose the key of these rules, so one client can use any number of keys; add a rule with a `client_address` \
         actor for the same requests",
        limits.iter().flat_map(|limit| unguarded(limit, &guards, (actors, &replaced))),
    ));
    lines.extend(line(
        "chosen-key-memory",
        &format!(
            "clients choose the key of these rules, and each key is stored for hours; beyond `keys: {keys}` live callers, new \
             callers share buckets, so check that `keys` is large enough"
        ),
        rules_where(limits, &|rule| {
            is_caller_chosen(rule, actors)
                && rule.daily.is_none()
                && rule.quota.period() >= Unit::Hour.micros()
        }),
    ));
    lines.extend(line(
        "chosen-cost",
        "clients choose the cost of their requests under these rules, unless a proxy in front of Diana sets the header of \
         `cost`",
        rules_where(limits, &|rule| {
            let Some(CostSource::Number(cost)) = rule.cost_source.as_deref() else { return false };
            cost.source.kind == header::KIND.name && rule.settling.is_none()
        }),
    ));
    lines.extend(line(
        "chosen-cost",
        "clients choose the value by which their requests cost more or less under these rules, unless a proxy or a filter in front \
         of Diana sets it; give a value that is not listed the `default` of a dear request, or read the value from metadata",
        rules_where(limits, &|rule| match rule.cost_source.as_deref() {
            Some(CostSource::Chosen(chosen)) => chosen.by.iter().any(is_chosen_value),
            _ => false,
        }),
    ));
    lines.extend(line(
        "chosen-reserve",
        "clients choose the permits that their requests reserve under these rules, unless a proxy in front of Diana sets the header \
         or the parameter; many requests with a small reservation are admitted at once, so add a rule with `in_flight`",
        rules_where(limits, &|rule| match rule.cost_source.as_deref() {
            Some(CostSource::Number(cost)) if rule.settling.is_some() => {
                is_chosen_value(&cost.source)
            }
            _ => false,
        }),
    ));
    lines.extend(line(
        "reserve-zero",
        "`reserve: 0` only checks that a permit is left, so all simultaneous requests are admitted, whatever they use; reserve \
         a typical cost, and add a rule with `in_flight`",
        rules_where(limits, &|rule| rule.settling.as_ref().is_some_and(|it| it.reserve == 0)),
    ));
    lines.extend(line(
        "chosen-key-slots",
        "clients choose the key of these rules, so a stranger can occupy the `in_flight` slots of another caller with slow \
         requests; use an address or a verified token as the actor",
        rules_where(limits, &|rule| rule.is_in_flight() && is_caller_chosen(rule, actors)),
    ));
    lines.extend(line(
        "idle-rule",
        "these rules allow more per unit than another rule of the same entry and actor allows per larger unit, so they may \
         never refuse a request",
        limits.iter().flat_map(|limit| idle(limit, &replaced)),
    ));
    lines.extend(line(
        "chosen-plan",
        "clients choose the plan of these rules, so every client can choose the largest",
        rules_where(limits, &|rule| has_chosen_plans(rule, actors)),
    ));
    lines.extend(line(
        "ban-of-all",
        "all requests count as one caller under these rules, so a ban refuses all of them",
        rules_where(limits, &|rule| rule.actor.is_empty() && rule.ban.is_some()),
    ));
    lines.extend(line(
        "twin-rules",
        "these rules count the same for the same callers, so only their order tells them apart, and they exchange their counts \
         if it changes; give each a `name`",
        rules_where(limits, &|rule| twins.contains(&rule.fingerprint)),
    ));
    lines
}

/// The names of rules that another rule replaces.
fn replaced(limits: &[Limit]) -> BTreeSet<&str> {
    let rules = limits.iter().flat_map(|limit| &limit.rules);
    rules.flat_map(|rule| &rule.replaces).map(String::as_str).collect()
}

/// The warning about `global` rules without Redis, or Redis without `global` rules. The latter is
/// omitted for rules that a remote document may replace (`are_final` is false).
pub fn of_fleet(limits: &[Limit], has_redis: bool, are_final: bool) -> Option<Advice> {
    let mut global = rules_where(limits, &|rule| rule.scope == Scope::Global).peekable();
    if !has_redis {
        let message = "without `redis`, each gateway counts `global` rules by itself and admits the whole limit; with `quota`, \
                       each worker does";
        return line("global-without-redis", message, global);
    }
    let is_idle = are_final && global.peek().is_none();
    is_idle.then(|| {
        Advice::new("redis-unused", "`redis` is not used, since no rule has `scope: global`")
    })
}

/// The warning about Redis without a namespace, for the gateway's own document.
pub fn of_namespace(has_redis: bool, has_namespace: bool) -> Option<Advice> {
    let message = "`redis` without `namespace`: all gateways with this Redis and root id count together, those of another \
                   environment, too; set `namespace` to another name in each environment, such as `production` (usage then \
                   starts from zero once)";
    let advice = || Advice { is_mistake: true, ..Advice::new("redis-without-namespace", message) };
    (has_redis && !has_namespace).then(advice)
}

fn of_sources(known: &ActorSources) -> Vec<Advice> {
    let name = &known.actor.name;
    let warnings = known.sources.iter().filter_map(|source| source.warning());
    let advice = |warning| Advice::new("actor-source", format!("actor `{name}`: {warning}"));
    warnings.map(advice).collect()
}

/// Rules without effect: another rule of the entry counts the same, and its longer unit allows
/// less.
fn idle<'l>(limit: &'l Limit, replaced: &BTreeSet<&str>) -> impl Iterator<Item = &'l Rule> {
    let counts = |rule: &Rule| !rule.is_in_flight() && rule.quota.burst.is_none();
    let is_less = move |less: &Rule, more: &Rule| {
        counts(less)
            && !less.shadow
            && less.over.is_none()
            && !replaced.contains(less.name.as_str())
            && (&less.actor, less.scope, less.usual_cost())
                == (&more.actor, more.scope, more.usual_cost())
            && less.quota.unit.micros() > more.quota.unit.micros()
            && less.quota.rpu < more.quota.rpu
    };
    let rules = limit.rules.iter().filter(move |rule| counts(rule));
    rules.filter(move |rule| limit.rules.iter().any(|other| is_less(other, rule)))
}

/// Returns true if a limit has a rule that depends on client addresses only, and that no other rule
/// replaces.
fn is_guard(limit: &Limit, actors: &[ActorSources], replaced: &BTreeSet<&str>) -> bool {
    let by_address = |rule: &Rule| actors_of(rule, actors).all(|known| known.is_address);
    let is_one = |rule: &Rule| {
        !rule.actor.is_empty() && !replaced.contains(rule.name.as_str()) && rule.over.is_none()
    };
    limit.rules.iter().any(|rule| is_one(rule) && by_address(rule))
}

/// Rules with chosen keys whose requests are not covered by any guard.
fn unguarded<'l>(
    limit: &'l Limit,
    guards: &[&Limit],
    (actors, replaced): (&'l [ActorSources], &BTreeSet<&str>),
) -> impl Iterator<Item = &'l Rule> {
    let is_below = |guard: &Limit, url: &Prefix| guard.urls.iter().any(|it| it.covers(url.path()));
    // A condition on values that clients choose may exclude requests from the guard.
    let is_open = |guard: &Limit| {
        let has_values = guard.matcher.unless.iter().any(|block| !block.values.is_empty());
        guard.matcher == limit.matcher || guard.matcher.any.is_empty() && !has_values
    };
    let covers =
        |guard: &&Limit| is_open(guard) && limit.urls.iter().all(|url| is_below(guard, url));
    let guarded = is_guard(limit, actors, replaced) || guards.iter().any(covers);
    limit.rules.iter().filter(move |rule| !guarded && is_caller_chosen(rule, actors))
}

/// Clients choose a compound key if they choose any part: that part alone yields an unlimited
/// number of keys.
fn is_caller_chosen(rule: &Rule, actors: &[ActorSources]) -> bool {
    actors_of(rule, actors).any(|known| known.is_caller_chosen)
}

/// Returns true if clients choose the value of a source.
fn is_chosen_value(wanted: &IdentitySource) -> bool {
    identity::build(wanted).is_ok_and(|source| source.is_caller_chosen())
}

/// Returns true if clients choose the plan of a rule.
fn has_chosen_plans(rule: &Rule, actors: &[ActorSources]) -> bool {
    match rule.plans.as_ref().map(|plans| &plans.kind) {
        Some(PlanKind::Listed { by: Some(by), .. }) => by.iter().any(is_chosen_value),
        Some(PlanKind::Listed { by: None, of, .. }) => {
            !of.is_empty() && is_caller_chosen(rule, actors)
        }
        Some(PlanKind::FromData(_)) | None => false,
    }
}

fn actors_of<'k>(
    rule: &Rule,
    actors: &'k [ActorSources],
) -> impl Iterator<Item = &'k ActorSources> {
    rule.actor.iter().filter_map(|&index| actors.get(index))
}

/// The rules for which `is` returns true.
fn rules_where<'l>(
    limits: &'l [Limit],
    is: &dyn Fn(&Rule) -> bool,
) -> impl Iterator<Item = &'l Rule> + use<'l> {
    let rules = limits.iter().flat_map(|limit| &limit.rules);
    rules.filter(|rule| is(rule)).collect::<Vec<_>>().into_iter()
}

/// Advice about some rules. `None` if there are none.
fn line<'r>(
    id: &'static str,
    message: &str,
    rules: impl Iterator<Item = &'r Rule>,
) -> Option<Advice> {
    let rules: Vec<String> = rules.map(|rule| rule.name.clone()).collect();
    (!rules.is_empty()).then(|| Advice { rules, ..Advice::new(id, message) })
}
