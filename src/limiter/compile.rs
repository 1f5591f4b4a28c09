//! A limiter from a policy. What need not be done per request is done here.

mod reads;
mod spec;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use crate::bans::Bans;
use crate::commit::Turn;
use crate::limiter::{CompiledRule, Entries, Fleet, Kinds, Limit, Limiter, Reports, Scratch};
use crate::plans::RulePlans;
use crate::report::metrics::RuleCounts;
use crate::upkeep::Upkeep;
use diana_policy::key::Seed;
use diana_policy::port::SharedData;
use diana_policy::redis::{OnFailure, Redis};
use diana_policy::time::{Micros, SECOND};
use diana_policy::{self as policy, Actor, Policy, Rule, Scope};
use diana_redis::client::Client;
use diana_redis::handle::Handle;
use diana_redis::part::Parts;
use diana_redis::store::{NoCodec, RedisStore};
use diana_request::cost::Teller;
use diana_request::identity::caller::{Callers, Counted};
use diana_request::identity::sources::Sources;
use diana_request::matching::PathIndex;
use diana_request::plan::Choosers;
use diana_request::settling::Settler;
use diana_store::hot::spotter::{Spotter, Storage};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{CounterSpec, Store};
use reads::{excepts_paths, has_exemptions, reads_headers};
use spec::counter_spec;

/// A rule or an actor that nothing can be built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unbuildable {
    /// Its name.
    pub name: String,
    /// What is wrong.
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

impl Limiter {
    /// A limiter that counts in `stores`. `seed` is the secret that callers are hashed with.
    ///
    /// # Errors
    /// If there is a rule that nothing can be built from. Configurations that were read have none.
    pub fn new(
        policy: Policy,
        seed: Seed,
        mut stores: Stores<'_>,
        client: Option<Client>,
    ) -> Result<Limiter, Unbuildable> {
        stores.lifts = policy.admin.is_some();
        let actors = policy.actors.iter().map(sources).collect::<Result<Vec<_>, _>>()?;
        let reads_headers = reads_headers(&policy, &actors);
        let paths = PathIndex::new(policy.limits.iter().map(|limit| limit.urls.as_slice()));
        let needs_path = paths.needs_path() || excepts_paths(&policy);
        let has_exemptions = has_exemptions(&policy);
        let redis = Rc::new(RefCell::new(handle(policy.redis.as_ref(), client.as_ref())));
        let mut builder =
            Builder::new(&policy, actors, seed, stores, client.as_ref(), redis.clone());
        let (limits, judges) = builder.limits(policy.limits)?;
        let Builder { stores, callers, choosers, .. } = builder;
        let has_turn = |turn: &Turn| judges.iter().any(|judge| judge.turn == *turn);
        let (tick_interval, upkeep) = intervals(&judges);
        let mut limiter = Limiter {
            entries: Entries {
                paths,
                limits,
                except: policy.except,
                has_exemptions,
                needs_path,
                reads_headers: reads_headers || choosers.reads_headers(),
            },
            kinds: Kinds {
                turns: Turn::ALL.into_iter().filter(has_turn).collect(),
                has_bans: judges.iter().any(|judge| judge.bans.is_some()),
                settles: judges.iter().any(|judge| judge.settler.is_some()),
            },
            reports: Reports {
                shadow: policy.shadow,
                log_refused: policy.log_refused,
                accepted: policy.accepted,
                fields: policy.fields,
                markers: markers(&judges, policy.mark.as_ref()),
                mark: policy.mark,
            },
            fleet: Fleet {
                client,
                redis,
                asked: BTreeMap::new(),
                inquiries: Vec::new(),
                is_global: judges.iter().any(|judge| judge.rule.scope == Scope::Global),
                mode: None,
            },
            upkeep: Upkeep::every(tick_interval, upkeep),
            rules: judges,
            callers,
            choosers,
            traffic: stores.traffic,
            freed: Rc::default(),
            scratch: Scratch::default(),
        };
        // Where nothing depends on the path, the same entries cover all of them.
        limiter.find_limits(b"/");
        Ok(limiter)
    }

    /// A limiter that shares nothing with anybody, for tools and tests: `data` is its own.
    ///
    /// # Errors
    /// As [`Limiter::new`].
    pub fn alone(
        policy: Policy,
        seed: Seed,
        data: Rc<dyn SharedData>,
    ) -> Result<Limiter, Unbuildable> {
        Limiter::new(policy, seed, Stores::new("alone".into(), data, &mut Tables::default()), None)
    }
}

/// What all rules are built with.
struct Builder<'s> {
    stores: Stores<'s>,
    callers: Callers,
    choosers: Choosers,
    /// How many live callers room is made for.
    keys: usize,
    /// How many rules there are.
    rules: usize,
    redis: Rc<RefCell<Handle>>,
    /// Into how many parts the keys of Redis fall, if rules for the fleet are counted there. Otherwise each gateway
    /// counts for itself.
    parts: Option<Parts>,
}

impl<'s> Builder<'s> {
    fn new(
        policy: &Policy,
        actors: Vec<Sources>,
        seed: Seed,
        stores: Stores<'s>,
        client: Option<&Client>,
        redis: Rc<RefCell<Handle>>,
    ) -> Builder<'s> {
        let rules = || policy.limits.iter().flat_map(|limit| &limit.rules);
        let percentiles = rules().any(|rule| (1..100).contains(&rule.enforce));
        let mut callers = Callers::new(actors, seed, percentiles);
        client.into_iter().for_each(|client| callers.reseed(client.seed()));
        let (keys, rules) = (policy.keys, rules().count());
        let choosers = Choosers::default();
        let parts = client.map(Client::parts);
        Builder { stores, callers, choosers, keys, rules, redis, parts }
    }

    /// All entries, and their rules one after the other.
    fn limits(
        &mut self,
        limits: Vec<policy::Limit>,
    ) -> Result<(Vec<Limit>, Vec<CompiledRule>), Unbuildable> {
        // What is taken at once leaves no holes behind where it grew.
        let count = limits.iter().map(|limit| limit.rules.len()).sum();
        let (mut built, mut judges) = (Vec::with_capacity(limits.len()), Vec::with_capacity(count));
        for policy::Limit { matcher, except, rules, .. } in limits {
            let start = judges.len();
            for rule in rules {
                judges.push(self.judge(judges.len(), rule)?);
            }
            built.push(Limit { matcher, except, rules: start..judges.len() });
        }
        Ok((built, judges))
    }

    fn judge(&mut self, number: usize, mut rule: Rule) -> Result<CompiledRule, Unbuildable> {
        let spec = counter_spec(&rule, self.keys, self.rules)?;
        let teller = rule.told.as_ref().map(|told| Teller::new(told, rule.quota.cost)).transpose();
        let teller = teller.map_err(|_| Unbuildable::new(&rule, "no such source of a cost"))?;
        let (keys, can, algorithm) = (spec.keys, spec.can(), spec.algorithm.clone());
        let leasing = spec.leasing();
        let counted = self.counted(&rule);
        let actor = self.callers.register(&rule.actor, counted);
        let plans = self.plans(&rule, actor, &spec)?;
        let stores = &mut self.stores;
        let hot = rule.hot.take().map(|hot| {
            let (data, namespace) = (&stores.data, &stores.namespace);
            Spotter::new(hot, Storage::of(rule.scope, data, namespace, rule.fingerprint))
        });
        // Those who have the same first actor lie in one part, which may thus have to hold all of them.
        let even = |parts| if rule.actor.len() > 1 { Parts::ONE } else { parts };
        let in_redis = self.parts.filter(|_| rule.scope == Scope::Global).map(even);
        let no_codec = |NoCodec| Unbuildable::new(&rule, "Redis cannot count by its algorithm");
        let store: Box<dyn Store> = match in_redis {
            Some(parts) => {
                let redis = self.redis.clone();
                let store =
                    RedisStore::new(spec, number, parts, redis, stores).map_err(no_codec)?;
                Box::new(store)
            }
            None => stores.open(rule.scope, spec),
        };
        let bans = rule.ban.map(|ban| {
            let fleet = in_redis.map(|parts| (number, parts, self.redis.clone()));
            Box::new(Bans::new(ban, rule.scope, rule.fingerprint, keys, fleet, stores))
        });
        let settler = rule.settling.as_deref().map(|settling| Box::new(Settler::new(settling)));
        Ok(CompiledRule {
            actor,
            turn: Turn::of(&rule, leasing),
            queues: can.queues,
            counts: RuleCounts::default(),
            change_in_keys: 0,
            logged: None,
            name: rule.name.as_str().into(),
            keys: rule.daily.map_or(keys as u64, |shape| shape.callers),
            rule,
            algorithm,
            teller: teller.map(Box::new),
            settler,
            store,
            plans,
            bans,
            hot,
        })
    }

    /// Where a rule's callers are counted.
    fn counted(&self, rule: &Rule) -> Counted {
        match self.parts {
            Some(_) if rule.scope == Scope::Global => Counted::InFleet,
            _ => Counted::Here,
        }
    }

    fn plans(
        &mut self,
        rule: &Rule,
        actor: Option<usize>,
        spec: &CounterSpec,
    ) -> Result<Option<Box<RulePlans>>, Unbuildable> {
        let Some(plans) = &rule.plans else { return Ok(None) };
        let judged = RulePlans::new(plans, (&self.callers, actor), spec, &mut self.choosers);
        let judged = judged.ok_or_else(|| Unbuildable::new(rule, "no such source of a plan"))?;
        Ok(Some(Box::new(judged)))
    }
}

fn sources(actor: &Actor) -> Result<Sources, Unbuildable> {
    let unbuildable = |_| Unbuildable { name: actor.name.clone(), why: "no such source" };
    Sources::new(actor).map_err(unbuildable)
}

/// What rules that are counted in Redis go by, as far as is known.
fn handle(redis: Option<&Redis>, client: Option<&Client>) -> Handle {
    // Without a Redis nothing goes by it.
    let on_failure = redis.map_or(OnFailure::Gateway, |redis| redis.on_failure);
    let mut handle = Handle::new(on_failure, client.map_or(Parts::ONE, Client::parts));
    client.into_iter().for_each(|client| client.tell(&mut handle));
    handle
}

/// How often permits have to be handed in, and how often bans and hot callers are seen to, in ticks.
fn intervals(judges: &[CompiledRule]) -> (Micros, Micros) {
    let alone = judges.iter().all(|judge| judge.rule.is_local() && judge.hot.is_none());
    let by_plan = |judge: &CompiledRule| judge.plans.as_ref().is_some_and(|plans| plans.lends);
    let lends = |judge: &CompiledRule| {
        judge.turn.lends() || by_plan(judge) && !judge.rule.is_local() && judge.rule.daily.is_none()
    };
    let lends = judges.iter().any(lends);
    let sees = judges.iter().any(|judge| judge.bans.is_some() || judge.hot.is_some());
    let seldom = if alone { SECOND } else { SECOND / 10 };
    (if lends { SECOND / 80 } else { seldom }, if sees { seldom } else { 0 })
}

/// Headers that mark requests, of hot callers and others, each once.
fn markers(judges: &[CompiledRule], mark: Option<&Rc<str>>) -> Vec<Rc<str>> {
    let mut markers: Vec<Rc<str>> = mark.into_iter().cloned().collect();
    for spotter in judges.iter().filter_map(|judge| judge.hot.as_ref()) {
        let header = spotter.hot().header.as_ref();
        markers.extend(header.filter(|header| !markers.contains(header)).cloned());
    }
    markers
}
