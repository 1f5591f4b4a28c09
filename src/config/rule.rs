//! A rule.

pub(crate) mod algo;
pub(crate) mod ban;
pub(crate) mod cost;
pub(crate) mod fingerprint;
pub(crate) mod hot;
pub(crate) mod in_flight;
pub(crate) mod limit;
pub(crate) mod naming;
pub(crate) mod over;
pub(crate) mod plans;
pub(crate) mod quota;
pub(crate) mod replaces;
pub(crate) mod settling;

use std::borrow::Cow;
use std::fmt::Display;
use std::rc::Rc;

use super::context::Context;
use super::fields::Fields;
use super::mapping::Allowed;
use super::mapping::Allowed::{Choice, Duration, Either, Flag, Map, Whole};
use super::mapping::{Choices, Mapping, optional, required, words};
use super::matching::{self, EXCEPT};
use super::node::Node;
use super::plans::PLANS;
use super::redis::{ON_FAILURE, ON_FAILURES};
use super::response::{self, RESPONSE};
use super::settings::KEYS;
use super::starts::{DAY_STARTS, MONTH_STARTS, WEEK_STARTS};
use super::values::{RULE_NAME, TEXT, TEXTS};
use algo::RuleAlgorithm;
use diana_algorithm::{Algorithm, Entry, Leasing, REGISTRY};
use diana_policy::MAX_PERMITS;
use diana_policy::gateways::MOST_GATEWAYS;
use diana_policy::time::Now;
use diana_policy::time::Unit;
use diana_policy::tree::Tree;
use diana_policy::{Absent, Prefix, Response, Rule, Scope};
use settling::SETTLED_COST;

/// A rule.
pub static RULE: Mapping = Mapping {
    name: "rule",
    what: "a mapping such as `{actor: device, unit: second, rpu: 10}`",
    keys: &[
        required("actor", Either(&[TEXT, TEXTS])),
        // Required without `in_flight`, like `rpu`.
        optional(
            "unit",
            Either(&[Choice(|| words(&Unit::ALL)), Duration(Unit::SHORTEST, Unit::LONGEST)]),
        ),
        optional("rpu", Either(&[Whole(0, MAX_PERMITS), Map(&limit::LIMIT)])),
        optional("algo", Choice(|| REGISTRY.iter().flat_map(Entry::names).collect())),
        optional("scope", Choice(|| words(SCOPES))),
        optional("share", Either(&[Flag, Whole(1, MOST_GATEWAYS)])),
        optional("keys", KEYS),
        optional("ask", Choice(|| words(ASKS))),
        optional("name", RULE_NAME),
        optional(
            "cost",
            Either(&[Whole(1, MAX_PERMITS), Map(&cost::COST), cost::CHOSEN_COST, SETTLED_COST]),
        ),
        optional("absent", Choice(|| words(ABSENTS))),
        optional("enforce", Whole(0, 100)),
        optional("shadow", Flag),
        optional("over", Map(&over::OVER)),
        optional("expose", Flag),
        optional("except", Map(&EXCEPT)),
        optional("replaces", replaces::RULES),
        optional("response", Map(&RESPONSE)),
        optional("ban", Map(&ban::BAN)),
        optional("quota", Map(&quota::QUOTA)),
        optional("hot", Map(&hot::HOT)),
        optional("count", Map(&settling::COUNT)),
        optional("in_flight", in_flight::LIMIT),
        optional("near", Whole(1, 99)),
        optional("plans", PLANS),
        optional("day_starts", DAY_STARTS),
        optional("week_starts", WEEK_STARTS),
        optional("month_starts", MONTH_STARTS),
        optional("on_failure", ON_FAILURE),
    ],
    more: || algo::of_algorithms(|_| true),
};

/// The scopes of a rule.
const SCOPES: Choices<Scope> =
    &[("local", Scope::Local), ("gateway", Scope::Gateway), ("global", Scope::Global)];

/// When a rule asks Redis: before it decides about a request, or after.
const ASKS: Choices<bool> = &[("before", false), ("after", true)];

/// The treatment of requests without the actor.
const ABSENTS: Choices<Absent> =
    &[("skip", Absent::Skip), ("share", Absent::Share), ("deny", Absent::Deny)];

/// Maximum number of parts of a compound key.
const MAX_PARTS: usize = 8;

/// Reads a rule of an entry.
pub fn read<'c>(node: &Node<'c>, entry: &EntryScope<'_>, context: &Context<'c>) -> Option<Rule> {
    let fields = Fields::read(node, &Allowed::Map(&RULE))?;
    let actor = actor(&fields, entry, context);
    let scope = fields.choice("scope", SCOPES).unwrap_or(Scope::Gateway);
    let mut limiter = match fields.get("in_flight") {
        Some(_) => in_flight::read(&fields),
        None => algo::read(&fields, (context.zone, &context.starts), scope),
    };
    let absent = fields.choice("absent", ABSENTS).unwrap_or(Absent::Skip);
    let enforce = fields.number("enforce").unwrap_or(100);
    let name = name(&fields, context);
    let except = matching::except(&fields, entry.ignore_case);
    let replaces = replaces::read(&fields);
    let response = response::read(&fields, entry.response);
    let ban = ban::read(&fields);
    let is_all = actor.as_ref().is_some_and(Vec::is_empty) && !entry.each;
    let hot = hot::read(&fields, is_all, context.actors);
    let (shadow, expose) = (fields.flag("shadow", false), fields.flag("expose", true));
    if is_all {
        all_is_one_caller(&fields, enforce);
    }
    let plans = plans::read(&fields, limiter.as_mut(), actor.as_deref().unwrap_or(&[]), context);
    let over = over::read(&fields, context.actors);
    let daily = quota::read(&fields, limiter.as_ref(), plans.as_deref(), (scope, is_all), context);
    let near = near(&fields, limiter.as_ref().map(|limiter| &*limiter.algorithm));
    let on_failure = fields.choice("on_failure", ON_FAILURES);
    if scope != Scope::Global && fields.get("on_failure").is_some() {
        let message = "requires `scope: global`: other rules do not use Redis";
        fields.report("on_failure", message.into());
    }
    let share = share(&fields, scope);
    let asks_after = asks_after(&fields, scope, limiter.as_ref());
    let limiter = limiter?;
    over::check(&fields, limiter.entry.short, &limiter.quota, plans.as_deref());
    if let Some(ban) = &ban {
        let most = plans.as_ref().map_or(limiter.quota, |plans| plans.largest());
        ban::check(&fields, ban, &most, limiter.settling.as_ref());
    }
    Some(Rule {
        name,
        // Computed from the whole entry, and completed after all rules are read.
        fingerprint: 0,
        actor: actor?,
        quota: limiter.quota,
        plans,
        cost_source: limiter.cost_source.map(Box::new),
        settling: limiter.settling.map(Box::new),
        algo: limiter.entry.short,
        words: limiter.algorithm.properties().words,
        scope,
        share,
        keys: fields.number("keys"),
        asks_after,
        daily,
        absent,
        enforce,
        shadow,
        over,
        expose,
        except,
        replaces,
        response,
        ban,
        hot,
        near,
        on_failure,
    })
}

/// Reports names of rules in other rules that mean none, or too much.
pub fn check(entries: &[Node<'_>], context: &Context<'_>) {
    replaces::check(entries, &context.names.borrow());
}

/// The keys of an entry that its rules depend on.
pub struct EntryScope<'e> {
    /// Its response.
    pub response: &'e Rc<Response>,
    /// Whether its paths ignore case.
    pub ignore_case: bool,
    /// Whether each of its paths is counted separately.
    pub each: bool,
    /// Its paths, unless they have problems.
    pub urls: Option<&'e [Prefix]>,
}

/// The indices of the actors in the key. Empty for `all`.
fn actor(fields: &Fields<'_>, entry: &EntryScope<'_>, context: &Context<'_>) -> Option<Vec<usize>> {
    let allowed = allowed_actors(context);
    let node = fields.node_as("actor", &allowed)?;
    if !matches!(node.tree(), Tree::List(_)) {
        return match node.text(&allowed)? {
            "all" => Some(Vec::new()),
            name => Some(vec![index(name, node, (entry, context), &allowed)?]),
        };
    }
    let parts = node.children();
    if !(1..=MAX_PARTS).contains(&parts.len()) {
        node.problem(format!("found {} names, allowed: 1 … {MAX_PARTS}", parts.len()));
        return None;
    }
    let mut indices = Vec::new();
    for part in &parts {
        let name = part.text(&allowed)?;
        if name == "all" {
            part.problem("`all` cannot be combined with other actors; remove it".into());
            return None;
        }
        let index = index(name, part, (entry, context), &allowed)?;
        if indices.contains(&index) {
            part.problem(format!("{} is already in the list", part.tree().found()));
        }
        indices.push(index);
    }
    Some(indices)
}

fn index(
    name: &str,
    node: &Node<'_>,
    (entry, context): (&EntryScope<'_>, &Context<'_>),
    allowed: &dyn Display,
) -> Option<usize> {
    // The seed document uses `actor` for the account.
    let wanted = if name == "actor" { "account" } else { name };
    let index = context.actors.iter().position(|known| known.actor.name == wanted);
    if index.is_none() {
        let mut names: Vec<&str> =
            context.actors.iter().map(|known| known.actor.name.as_str()).collect();
        names.push("all");
        node.unknown_name(name, &names, allowed);
    }
    let sources = index.and_then(|index| context.actors.get(index)).map(|known| &known.sources);
    for param in sources.into_iter().flatten().filter_map(|source| source.path_param()) {
        if entry.urls.is_some_and(|urls| !urls.iter().any(|url| url.names().any(|it| it == param)))
        {
            let message = format!(
                "actor `{name}` is read from `{{{param}}}`, which no path of this entry has; write \
                 it in `Url`, such as `/v1/{{{param}}}`"
            );
            node.problem(message);
        }
    }
    index
}

fn allowed_actors(context: &Context<'_>) -> String {
    let names = context.actors.iter().map(|known| known.actor.name.as_str()).take(20);
    let names: Vec<&str> = std::iter::once("all").chain(names).collect();
    format!("{}, another name under `actors`, or a list of names", names.join(", "))
}

fn all_is_one_caller(fields: &Fields<'_>, enforce: u8) {
    if fields.get("absent").is_some() {
        fields.report("absent", "not allowed with `actor: all`, which is never absent".into());
    }
    if (1..100).contains(&enforce) {
        let message =
            "selects a share of the callers, but `actor: all` is a single one; allowed: 0, 100";
        fields.report("enforce", message.into());
    }
}

/// The configured name of the rule. Empty if there is none.
fn name(fields: &Fields<'_>, context: &Context<'_>) -> String {
    let Some(text) = fields.text("name") else { return String::new() };
    if context.names.borrow_mut().insert(Cow::Owned(text.into()), 2).is_some() {
        fields.report("name", format!("duplicate name: an earlier rule has the name `{text}`"));
    }
    text.into()
}

/// How many gateways share the limit of the rule at least, if each one enforces its share.
fn share(fields: &Fields<'_>, scope: Scope) -> Option<u64> {
    let is_number = matches!(fields.get("share")?.tree(), Tree::Int(_));
    let least = if is_number { fields.number("share") } else { Some(1) };
    if !is_number && !fields.flag("share", false) {
        return None;
    }
    if scope != Scope::Global {
        let message = "requires `scope: global`: other rules count in each gateway alone";
        fields.report("share", message.into());
    }
    least
}

/// Whether the rule asks Redis after it has decided.
fn asks_after(fields: &Fields<'_>, scope: Scope, limiter: Option<&RuleAlgorithm>) -> bool {
    if scope != Scope::Global && fields.has("ask") {
        let message = "requires `scope: global`: other rules do not use Redis";
        fields.report("ask", message.into());
    }
    if fields.choice("ask", ASKS) != Some(true) {
        return false;
    }
    let leases = |limiter: &RuleAlgorithm| (limiter.entry.capabilities)(&limiter.quota).leasing;
    let why = match limiter {
        _ if fields.has("quota") => "`quota`, which asks no Redis for most requests",
        Some(limiter) if limiter.is_in_flight() => "`in_flight`, whose requests also end",
        Some(limiter) if limiter.settling.is_some() => "a cost that is settled at the end",
        Some(limiter) if leases(limiter) == Leasing::Never => {
            "rules that hold requests, since Redis assigns their turns"
        }
        _ => return true,
    };
    fields.report("ask", format!("`after` is not allowed with {why}"));
    true
}

/// The percentage of the limit above which admitted requests are counted.
fn near(fields: &Fields<'_>, algorithm: Option<&dyn Algorithm>) -> Option<u8> {
    let node = fields.get("near")?;
    let near = fields.number("near")?;
    let is_exact = |algorithm: &dyn Algorithm| {
        let unused = vec![0; algorithm.properties().words];
        algorithm.balance(&unused, Now::default()).remaining == algorithm.properties().limit
    };
    if !algorithm.is_none_or(is_exact) {
        node.key_problem(
            "not allowed with `LB` or `warm_up`, which issue permits one by one".into(),
        );
    }
    Some(near)
}
