//! An engine from a policy. What need not be done per request is done here.

use std::fmt;
use std::rc::Rc;

use super::charge::Turn;
use super::lent::Rows;
use super::plain::Plain;
use super::upkeep::Upkeep;
use super::{Engine, Judge, Limit, Scratch};
use crate::algorithm;
use crate::caller::{Callers, Counted};
use crate::config::policy::{Policy, Rule};
use crate::fleet::desk::Desk;
use crate::key::Seed;
use crate::metrics::Counts;
use crate::port::SharedData;
use crate::route::Router;
use crate::store::tables::Tables;
use crate::store::{Meter, NoCodec, Scope, Stores};
use crate::tickets::Tickets;
use crate::time::SECOND;

/// A rule that nothing can be built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unbuildable {
    /// The rule's name.
    pub rule: String,
    /// What is wrong.
    pub why: &'static str,
}

impl Unbuildable {
    fn new(rule: &Rule, why: &'static str) -> Unbuildable {
        Unbuildable { rule: rule.name.clone(), why }
    }
}

impl fmt::Display for Unbuildable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule `{}`: {}", self.rule, self.why)
    }
}

impl Engine {
    /// An engine that counts in `stores`. `seed` is the secret that callers are hashed with.
    ///
    /// # Errors
    /// If there is a rule that nothing can be built from. Configurations that were read have none.
    pub fn new(
        policy: Policy,
        seed: Seed,
        mut stores: Stores<'_>,
        desk: Option<Desk>,
    ) -> Result<Engine, Unbuildable> {
        if let Some(desk) = &desk {
            stores = stores.with_fleet(desk.link());
        }
        let is_plain = policy.is_plain();
        let reads_headers = policy.reads_headers();
        let rules = || policy.limits.iter().flat_map(|limit| &limit.rules);
        let beside = rules().count() > 1;
        let percentiles = rules().any(|rule| (1..100).contains(&rule.enforce));
        let mut needs_path = !policy.except.paths.is_empty();
        let router = Router::new(policy.limits.iter().map(|limit| &limit.url));
        let mut callers = Callers::new(policy.actors, seed, percentiles);
        desk.iter().for_each(|desk| callers.reseed(desk.seed()));
        let mut judges = Vec::new();
        let mut limits = Vec::new();
        let mut markers: Vec<Rc<str>> = Vec::new();
        for limit in policy.limits {
            let start = judges.len();
            needs_path |= !limit.except.paths.is_empty();
            for mut rule in limit.rules {
                needs_path |= !rule.except.paths.is_empty();
                let meter = meter(&rule, policy.keys, beside)?;
                let (keys, can) = (meter.keys, meter.can());
                let hot = rule.hot.take();
                let header = hot.as_ref().and_then(|hot| hot.header.as_ref());
                if let Some(header) = header.filter(|header| !markers.contains(header)) {
                    markers.push(header.clone());
                }
                let hot = hot.map(|hot| stores.open_hot(rule.scope, hot, rule.identity));
                let store = stores.open(rule.scope, meter);
                let mut store = store.map_err(|NoCodec| {
                    Unbuildable::new(&rule, "Redis cannot count by its algorithm")
                })?;
                let open = |ban| stores.open_bans(rule.scope, ban, rule.identity, keys);
                let bans = rule.ban.map(open);
                let in_fleet = store.fleet().is_some();
                let counted = if in_fleet { Counted::InFleet } else { Counted::Here };
                let actor = callers.register(&rule.actor, counted);
                let (turn, counts) = (Turn::of(&rule, can.leasing), Counts::default());
                let (queues, logged) = (can.queues, None);
                judges.push(Judge { rule, actor, store, bans, hot, queues, turn, counts, logged });
            }
            let rules = start..judges.len();
            limits.push(Limit { matcher: limit.matcher, except: limit.except, rules });
        }
        let needs_path = needs_path || router.needs_path();
        let of_callers = |judge: &Judge| match judge.rule.actor.as_slice() {
            [] => Plain::Everybody,
            _ => Plain::Actor(judge.actor),
        };
        let plain = judges.first().filter(|_| is_plain).map(of_callers);
        let alone = judges.iter().all(|judge| judge.rule.is_local() && judge.hot.is_none());
        let lends = judges.iter().any(|judge| judge.turn.lends());
        let upkeep = if alone { SECOND } else { SECOND / 10 };
        Ok(Engine {
            plain: plain.filter(|_| !needs_path),
            pace: if lends { SECOND / 80 } else { upkeep },
            upkeep: Upkeep::every(upkeep),
            has_bans: judges.iter().any(|judge| judge.bans.is_some()),
            is_global: judges.iter().any(|judge| judge.rule.scope == Scope::Global),
            serves: false,
            mode: None,
            desk,
            asked: Tickets::default(),
            lent: Rows::default(),
            traffic: stores.traffic,
            needs_path,
            reads_headers,
            router,
            limits,
            rules: judges,
            callers,
            markers,
            except: policy.except,
            shadow: policy.shadow,
            log_refused: policy.log_refused,
            accepted: policy.accepted,
            scratch: Scratch::default(),
        })
    }

    /// An engine that shares nothing with anybody, for tools and tests: `data` is its own.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn alone(
        policy: Policy,
        seed: Seed,
        data: Rc<dyn SharedData>,
    ) -> Result<Engine, Unbuildable> {
        Engine::new(policy, seed, Stores::new("alone".into(), data, &mut Tables::default()), None)
    }
}

/// What a rule's store is made from.
fn meter(rule: &Rule, keys: usize, beside: bool) -> Result<Meter, Unbuildable> {
    let entry = algorithm::entry(rule.algo);
    Ok(Meter {
        entry: entry.ok_or_else(|| Unbuildable::new(rule, "no such algorithm"))?,
        quota: rule.quota,
        algorithm: rule.algorithm.clone(),
        cost: rule.quota.cost,
        identity: rule.identity,
        keys: if rule.actor.is_empty() { 1 } else { keys },
        daily: rule.daily,
        beside,
    })
}
