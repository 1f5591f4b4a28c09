//! Builds a limiter from a policy.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use crate::check::InProgress;
use crate::entry_watch::EntryWatch;
use crate::fleet::Fleet;
use crate::limiter::Limiter;
use crate::matcher::{LimitRules, Matcher};
use crate::plans::RulePlans;
use crate::replaces::Replacements;
use crate::report::metrics::{RequestCounts, RuleCounts};
use crate::rule::{ChargePhase, CompiledRule};
use crate::rules::Rules;
use crate::source_watch::{self, SourceWatch};
use crate::upkeep::Upkeep;
use crate::verdict::Reporter;
use diana_algorithm::{self as algorithm, Leasing};
use diana_policy::key::{GatewayId, Seed};
use diana_policy::time::{Micros, SECOND};
use diana_policy::{
    self as policy, Actor, ConditionBlock, IdentitySource, Policy, Prefix, ResponseCost, Rule,
    Scope,
};
use diana_request::cost::CostReader;
use diana_request::identity::caller::{Callers, CountScope};
use diana_request::identity::sources::Sources;
use diana_request::identity::{self, client_address};
use diana_request::matching::PathIndex;
use diana_request::plan::PlanSelectors;
use diana_request::settling::UsageReader;
use diana_store::backend::Backend;
use diana_store::bans::Bans;
use diana_store::hot::spotter::{Spotter, Storage};
use diana_store::stores::Stores;
use diana_store::{CounterSpec, stores};

/// A rule or an actor that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unbuildable {
    /// Its name.
    pub name: String,
    /// The reason.
    pub why: &'static str,
}

impl Unbuildable {
    fn new(rule: &Rule, why: &'static str) -> Unbuildable {
        Unbuildable { name: rule.name.clone(), why }
    }
}

impl fmt::Display for Unbuildable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.name, self.why)
    }
}

/// Builds a limiter that counts in `stores`.
pub(crate) fn limiter(
    mut policy: Policy,
    seed: Seed,
    mut stores: Stores<'_>,
    backend: Option<Box<dyn Backend>>,
) -> Result<Limiter, Unbuildable> {
    stores.resets_bans = policy.admin.is_some();
    move_exempt_routes(&mut policy);
    let actors = policy.actors.iter().map(sources).collect::<Result<Vec<_>, _>>()?;
    let is_disabled = policy.disabled;
    // Without paths no entry covers a request.
    let covering = policy.limits.iter().filter(|_| !is_disabled);
    let paths = PathIndex::new(covering.map(|limit| (limit.urls.as_slice(), &limit.matcher)));
    let reads_headers = !is_disabled && reads_headers(&policy);
    let needs_path = !is_disabled
        && (paths.needs_path() || policy.excepts().any(|except| !except.paths.is_empty()));
    let is_address = |source: &IdentitySource| source.kind == client_address::KIND.name;
    let needs_address = !is_disabled
        && (policy.blocks().any(|block| !block.addresses.is_empty())
            || policy.sources().any(is_address));
    let has_exemptions = !is_disabled && policy.excepts().any(|except| !except.is_empty());
    let enforces_by_route =
        !is_disabled && !policy.shadow && policy.limits.iter().any(enforces_by_route);
    let entries = EntryWatch::new(&policy.limits);
    let mut builder = Builder::new(&policy, actors, seed, stores, backend);
    let (limits, list) = builder.limits(policy.limits)?;
    let replacements = if is_disabled { Replacements::default() } else { Replacements::new(&list) };
    let Builder { stores, callers, selectors, backend, .. } = builder;
    let has_phase = |phase: &ChargePhase| list.iter().any(|rule| rule.phase == *phase);
    let phases = ChargePhase::ALL.into_iter().filter(has_phase).collect();
    let (tick_interval, upkeep) = intervals(&list, stores.process.is_some());
    let mut covering = Vec::new();
    paths.at_root(None, &mut covering);
    let process = stores.process.map(|(process, _)| process);
    let is_global = !is_disabled && list.iter().any(|rule| rule.config.scope == Scope::Global);
    Ok(Limiter {
        matcher: Matcher {
            paths,
            limits,
            except: policy.except,
            has_exemptions: has_exemptions || replacements.is_any(),
            replacements,
            needs_address,
            is_exempted: false,
            counts: RequestCounts::default(),
            needs_path,
            covering,
            path: Vec::new(),
            reads_headers: reads_headers || !is_disabled && selectors.reads_headers(),
            enforces_by_route,
            is_disabled,
            callers,
            selectors,
        },
        reporter: Reporter {
            log_refused: policy.log_refused,
            accepted: policy.accepted,
            fields: policy.fields,
            markers: markers(&list, policy.mark.as_ref()),
            mark: policy.mark,
        },
        entries,
        upkeep: Upkeep::new(tick_interval, upkeep, stores.traffic),
        rules: Rules {
            phases,
            has_bans: list.iter().any(|rule| rule.bans.is_some()),
            settles: list.iter().any(|rule| rule.usage_reader.is_some()),
            returned: Rc::default(),
            has_backend: backend.is_some(),
            process: process.filter(|_| list.iter().any(CompiledRule::has_turns)),
            list,
        },
        fleet: Fleet::new(backend, is_global),
        progress: InProgress::default(),
    })
}

/// Moves the exempt routes of the document to its entries, so that the route of a request is only read
/// where an entry applies.
fn move_exempt_routes(policy: &mut Policy) {
    let exempt = std::mem::take(&mut policy.except.any);
    let (of_routes, others): (Vec<_>, Vec<_>) =
        exempt.into_iter().partition(ConditionBlock::reads_route);
    policy.except.any = others;
    policy.limits.iter_mut().for_each(|limit| limit.except.any.extend_from_slice(&of_routes));
}

/// Returns true if a rule of an entry may refuse or mark requests, and depends on the route.
fn enforces_by_route(limit: &policy::Limit) -> bool {
    let of_rules = limit.rules.iter().flat_map(|rule| &rule.except.any);
    let blocks = limit.matcher.any.iter().chain(&limit.matcher.unless).chain(&limit.except.any);
    blocks.chain(of_rules).any(ConditionBlock::reads_route)
        && limit.rules.iter().any(|rule| !rule.shadow && rule.enforce > 0)
}

/// Inputs for all rules of a limiter.
struct Builder<'s> {
    stores: Stores<'s>,
    callers: Callers,
    /// A description of each actor.
    actors: Vec<String>,
    selectors: PlanSelectors,
    /// The number of live callers per rule to make room for.
    keys: usize,
    /// The number of rules.
    rules: usize,
    /// The authority for the fleet. Without it each gateway counts alone.
    backend: Option<Box<dyn Backend>>,
    /// Whether all rules are in shadow.
    shadow: bool,
    gateway: GatewayId,
}

impl<'s> Builder<'s> {
    fn new(
        policy: &Policy,
        actors: Vec<Sources>,
        seed: Seed,
        stores: Stores<'s>,
        backend: Option<Box<dyn Backend>>,
    ) -> Builder<'s> {
        let rules = || policy.rules();
        let percentiles = rules().any(|rule| (1..100).contains(&rule.enforce));
        let mut callers = Callers::new(actors, seed, percentiles);
        if let Some(backend) = &backend {
            callers.reseed(backend.seed());
        }
        let (keys, rules) = (policy.keys, rules().count());
        let selectors = PlanSelectors::default();
        let shadow = policy.shadow;
        let actors = policy.actors.iter().map(source_watch::describe).collect();
        let gateway = seed.gateway();
        Builder { stores, callers, actors, selectors, keys, rules, backend, shadow, gateway }
    }

    /// Compiles all entries. Returns them with one list of all rules, in order.
    fn limits(
        &mut self,
        limits: Vec<policy::Limit>,
    ) -> Result<(Vec<LimitRules>, Vec<CompiledRule>), Unbuildable> {
        // Sized once: growth would leave holes in the memory.
        let count = limits.iter().map(|limit| limit.rules.len()).sum();
        let (mut built, mut list) = (Vec::with_capacity(limits.len()), Vec::with_capacity(count));
        for policy::Limit { urls, each, matcher, except, rules, .. } in limits {
            let start = list.len();
            let urls: Rc<[Prefix]> = urls.into();
            // The actors of rules so far, and their parts in this entry.
            let mut known: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
            for rule in rules {
                let parts = match known.iter().find(|(actor, _)| *actor == rule.actor) {
                    Some((_, parts)) => parts.clone(),
                    None => {
                        let parts = self.callers.within(&rule.actor, &urls, each);
                        known.push((rule.actor.clone(), parts.clone()));
                        parts
                    }
                };
                list.push(self.compile(list.len(), rule, &parts)?);
            }
            let (rules, has_applied) = (start..list.len(), Cell::new(false));
            built.push(LimitRules { urls, matcher, except, rules, has_applied });
        }
        Ok((built, list))
    }

    /// Compiles a rule that counts by these parts of callers.
    fn compile(
        &mut self,
        number: usize,
        mut rule: Rule,
        parts: &[usize],
    ) -> Result<CompiledRule, Unbuildable> {
        let shadow = self.shadow || rule.shadow;
        if let Some(ban) = &mut rule.ban {
            ban.is_shadow = shadow;
        }
        let spec = counter_spec(&rule, parts, rule.keys.unwrap_or(self.keys), self.rules)?;
        let cost_reader = rule
            .cost_source
            .as_ref()
            .map(|source| CostReader::new(source, rule.quota.cost))
            .transpose();
        let cost_reader =
            cost_reader.map_err(|_| Unbuildable::new(&rule, "unknown source of the cost"))?;
        let (keys, capabilities, algorithm) =
            (spec.keys, spec.capabilities(), spec.algorithm.clone());
        let leasing = spec.leasing();
        let count_scope = self.count_scope(&rule);
        let gateway = (count_scope == CountScope::Here).then_some(self.gateway);
        let actor = self.callers.register(parts, count_scope);
        // The path of an entry with `each` selects no plan.
        let own = parts.get(..rule.actor.len()).unwrap_or_default();
        let by = if own == parts { actor } else { self.callers.register(own, count_scope) };
        let plans = self.plans(&rule, by, &spec)?;
        let stores = &mut self.stores;
        let hot = rule.hot.take().map(|hot| {
            let (data, namespace) = (&stores.data, &stores.namespace);
            Spotter::new(hot, Storage::of(rule.scope, data, namespace, rule.fingerprint), gateway)
        });
        let backend = self.backend.as_mut().filter(|_| rule.scope == Scope::Global);
        let is_in_backend = backend.is_some();
        let no_codec = || Unbuildable::new(&rule, "its algorithm does not support `scope: global`");
        let (fingerprint, ban) = (rule.fingerprint, rule.ban);
        let (store, authority) = match backend {
            Some(backend) => {
                let authority = ban.map(|ban| backend.open_bans(number, fingerprint, &ban, &spec));
                (backend.open(number, spec, stores).ok_or_else(no_codec)?, authority)
            }
            None => match rule.share {
                Some(least) => (stores.open_share(least, spec), None),
                None => (stores.open(rule.scope, spec), None),
            },
        };
        let bans = ban
            .map(|ban| Box::new(Bans::new(ban, rule.scope, fingerprint, keys, authority, stores)));
        let usage_reader =
            rule.settling.as_deref().map(|settling| Box::new(UsageReader::new(settling)));
        let cost = rule.settling.as_ref().and_then(|settling| settling.response_cost.as_ref());
        let watch = |cost: &ResponseCost, between: &str| {
            let source = source_watch::describe_usage(&cost.terms, between);
            Box::new(SourceWatch::new(Some(source), source_watch::RESPONSES))
        };
        let usage = cost.map(|cost| watch(cost, " or "));
        let sum = cost.filter(|cost| cost.terms.len() > 1);
        let whole_usage = sum.map(|cost| watch(cost, " and "));
        let described: Vec<&str> = rule
            .actor
            .iter()
            .filter_map(|&actor| self.actors.get(actor).map(String::as_str))
            .collect();
        let callers = (!described.is_empty()).then(|| described.join(" and "));
        let callers = SourceWatch::new(callers, source_watch::REQUESTS);
        Ok(CompiledRule {
            gateway,
            actor,
            callers,
            usage,
            whole_usage,
            is_rounded: false,
            enforce: if shadow { 0 } else { rule.enforce },
            tries_bans: shadow,
            phase: ChargePhase::of(&rule, leasing),
            queues: capabilities.queues,
            counts: RuleCounts::default(),
            logged: None,
            name: rule.name.as_str().into(),
            keys: rule.daily.map_or(keys as u64, |shape| shape.callers),
            config: rule,
            algorithm,
            cost_reader: cost_reader.map(Box::new),
            usage_reader,
            store,
            is_in_backend,
            gateways: self.stores.gateways.clone(),
            plans,
            bans,
            hot,
        })
    }

    /// Where a rule's callers are counted.
    fn count_scope(&self, rule: &Rule) -> CountScope {
        match self.backend {
            Some(_) if rule.scope == Scope::Global => CountScope::InFleet,
            _ => CountScope::Here,
        }
    }

    fn plans(
        &mut self,
        rule: &Rule,
        actor: Option<usize>,
        spec: &CounterSpec,
    ) -> Result<Option<Box<RulePlans>>, Unbuildable> {
        let Some(plans) = &rule.plans else { return Ok(None) };
        let plans = RulePlans::new(plans, (&self.callers, actor), spec, &mut self.selectors);
        let plans = plans.ok_or_else(|| Unbuildable::new(rule, "unknown source of the plan"))?;
        Ok(Some(Box::new(plans)))
    }
}

fn sources(actor: &Actor) -> Result<Sources, Unbuildable> {
    let unbuildable = |_| Unbuildable { name: actor.name.clone(), why: "unknown source" };
    Sources::new(actor).map_err(unbuildable)
}

/// The ticks between two reports of admitted requests to an authority.
const REPORTS: Micros = SECOND / 50;

/// The ticks between two returns of leases, and between two updates of bans and hot callers: zero
/// if no rule has either.
fn intervals(list: &[CompiledRule], has_process: bool) -> (Micros, Micros) {
    let is_unshared = list.iter().all(|rule| rule.config.is_local() && rule.hot.is_none());
    let by_plan = |rule: &CompiledRule| rule.plans.as_ref().is_some_and(|plans| plans.leases);
    let leases = |rule: &CompiledRule| {
        if rule.is_in_backend && rule.config.asks_after {
            return false;
        }
        let is_in_process = has_process && rule.config.scope == Scope::Gateway;
        !is_in_process && rule.phase.leases()
            || !is_in_process
                && by_plan(rule)
                && !rule.config.is_local()
                && rule.config.daily.is_none()
    };
    let reports = list.iter().any(|rule| rule.is_in_backend && rule.config.asks_after);
    let leases = list.iter().any(leases);
    let has_updates = list.iter().any(|rule| rule.bans.is_some() || rule.hot.is_some());
    let updates = if is_unshared { SECOND } else { SECOND / 10 };
    let others = if reports { REPORTS } else { updates };
    (if leases { SECOND / 80 } else { others }, if has_updates { updates } else { 0 })
}

/// Headers that mark requests, of hot callers, exceeded limits and others, each once.
fn markers(list: &[CompiledRule], mark: Option<&Rc<str>>) -> Vec<Rc<str>> {
    let mut markers: Vec<Rc<str>> = mark.into_iter().cloned().collect();
    for rule in list {
        let hot = rule.hot.as_ref().and_then(|spotter| spotter.hot().header.as_ref());
        let over = rule.config.over.as_ref().map(|over| &over.mark);
        for header in hot.into_iter().chain(over) {
            if !markers.contains(header) {
                markers.push(header.clone());
            }
        }
    }
    markers
}

/// The specification of a rule's store.
fn counter_spec(
    rule: &Rule,
    parts: &[usize],
    keys: usize,
    rules: usize,
) -> Result<CounterSpec, Unbuildable> {
    let entry = algorithm::entry(rule.algo);
    let entry = entry.ok_or_else(|| Unbuildable::new(rule, "unknown algorithm"))?;
    let keeps_used = entry.keeps_used(rule.settling.as_deref());
    let spec = CounterSpec::new(entry, rule.quota, keeps_used);
    let spec = spec.map_err(|_| Unbuildable::new(rule, "its quota is invalid"))?;
    let leases = (entry.capabilities)(&rule.quota).leasing != Leasing::Never;
    let is_even = rule.cost_source.is_none() || !leases;
    Ok(CounterSpec {
        plans: rule.plans.clone(),
        unit_cost: if is_even { rule.quota.cost } else { 1 },
        fingerprint: rule.fingerprint,
        keys: if parts.is_empty() { 1 } else { keys },
        is_compound: parts.len() > 1,
        lines: stores::lines(rules),
        daily: rule.daily,
        // A request that another rule refuses cancels its charges, and so does a settlement.
        may_be_cancelled: rules > 1 || rule.settling.is_some(),
        settles: rule.settling.is_some(),
        checks: rule.settling.as_ref().is_some_and(|settling| settling.reserve == 0),
        on_failure: rule.on_failure,
        asks_after: rule.asks_after,
        ..spec
    })
}

/// Returns true if the rules depend on other headers than the path. One call reads all headers, for
/// less than several look-ups.
fn reads_headers(policy: &Policy) -> bool {
    // A source without mistakes, as the configuration has been read.
    let is_header = |source: &IdentitySource| {
        identity::build(source).is_ok_and(|source| source.reads_headers())
    };
    policy.blocks().any(ConditionBlock::reads_headers) || policy.sources().any(is_header)
}
