//! One configuration in one worker: what its root and its streams have in common.

mod operator;
mod redis;
mod upkeep;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::clock::{Clocks, Offset};
use super::host::{Host, Level};
use super::operator::Operator;
use super::seed;
use super::waiting::Waiting;
use diana_limiter::engine::{Engine, Resumed};
use diana_limiter::verdict::Verdict;
use diana_policy::Policy;
use diana_policy::key::Key;
use diana_policy::port::{Clock, Request};
use diana_policy::time::{Micros, Now};
use diana_redis::client::{Client, Endpoint};
use diana_redis::handle::Handle;
use diana_store::remains::Remains;
use diana_store::stores::Stores;
use diana_store::tables::Tables;

/// What a worker keeps for all of its instances, and what tells the next one from all others.
pub(crate) struct Kept<'a> {
    pub(crate) tables: &'a mut Tables,
    pub(crate) offset: Rc<Offset>,
    pub(crate) number: u32,
}

/// An engine and what waits for it.
pub struct Instance {
    /// The host's number of the root.
    root: u32,
    /// Tells the engine from all others of the worker.
    pub(crate) number: u32,
    offset: Rc<Offset>,
    engine: RefCell<Engine>,
    reads_headers: bool,
    /// Headers that mark requests.
    marks: Vec<Rc<str>>,
    /// Where its rules come from, and since when they are in force, by the wall clock.
    origin: (&'static str, Micros),
    /// What an operator may ask.
    operator: Option<Box<Operator>>,
    /// How often upkeep is due, in ticks.
    interval: Micros,
    namespace: Rc<str>,
    /// Whether there is a Redis.
    has_redis: bool,
    waiting: Waiting,
    /// When upkeep is due; nothing while there is nothing to keep up.
    upkeep: Cell<Option<Micros>>,
    /// Whether it has handed in what it held, since it last judged.
    closed: Cell<bool>,
    /// Whether another one of its namespace came later.
    is_old: Cell<bool>,
    /// Whether it has judged since it was last kept up, and when it was found that it had.
    busy: Cell<bool>,
    used: Cell<Micros>,
}

impl Instance {
    pub(crate) fn new(
        namespace: Rc<str>,
        policy: Policy,
        way: Option<Endpoint>,
        kept: Kept<'_>,
        host: &dyn Host,
    ) -> Result<Instance, String> {
        let data = host.data();
        let seed = seed::agree(&namespace, &*data, host);
        let has_redis = way.is_some();
        let operator = Operator::new(&policy, seed, host);
        let from = if policy.is_remote { "remote" } else { "local" };
        let client = way.map(|way| {
            // Each has a name of its own to Redis, also where the host has no random numbers.
            let random = host.random() as u64 ^ u64::from(kept.number) << 32;
            Client::new(way, &namespace, data.clone(), seed, random)
        });
        let stores = Stores::new(namespace.clone(), data, kept.tables);
        let engine = Engine::new(policy, seed, stores, client)
            .map_err(|unbuildable| unbuildable.to_string())?;
        Ok(Instance {
            root: host.caller(),
            number: kept.number,
            offset: kept.offset,
            reads_headers: engine.reads_headers() || operator.is_some(),
            operator,
            origin: (from, host.wall()),
            marks: engine.markers().to_vec(),
            interval: engine.tick_interval(),
            engine: RefCell::new(engine),
            has_redis,
            waiting: Waiting::default(),
            upkeep: Cell::new(None),
            closed: Cell::new(false),
            is_old: Cell::new(false),
            busy: Cell::new(false),
            used: Cell::new(0),
            namespace,
        })
    }

    /// The host's number of its root.
    #[must_use]
    #[inline(always)]
    pub fn root(&self) -> u32 {
        self.root
    }

    /// Whether more of a request is read than its path.
    #[must_use]
    #[inline(always)]
    pub fn reads_headers(&self) -> bool {
        self.reads_headers
    }

    /// Headers that nobody but this filter may set, in lower case.
    #[must_use]
    #[inline(always)]
    pub fn marks(&self) -> &[Rc<str>] {
        &self.marks
    }

    /// How many parts of Redis cannot be relied upon, so that this gateway counts alone what lies there.
    #[must_use]
    pub fn away(&self) -> usize {
        self.redis(Handle::away).unwrap_or(0)
    }

    /// Whether this gateway counts a caller of a rule for the fleet alone.
    #[must_use]
    pub fn is_alone(&self, caller: Key) -> bool {
        self.redis(|redis| redis.is_alone(caller)).unwrap_or(false)
    }

    /// How many gateways its rules for the fleet are divided among while they are, as last known.
    #[must_use]
    pub fn gateways(&self) -> u64 {
        self.redis(|redis| redis.gateways).unwrap_or(1)
    }

    /// How many requests have their answers and have not gone on yet: only so many go on in one call of the host.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.waiting.answered()
    }

    /// Whether there is something to do for the fleet, of which its clock may not know yet.
    #[inline(always)]
    pub(crate) fn is_pressed(&self) -> bool {
        self.has_redis && self.redis_is_pressed()
    }

    /// Whether it has to find out before it decides whether an operator comes.
    #[inline(always)]
    pub(crate) fn asks_who_comes(&self) -> bool {
        self.operator.is_some()
    }

    /// Decides about the request that the host is calling about, and marks it if its caller is hot and it
    /// may go on. Envoy chooses its route after that.
    pub(crate) fn decide(&self, request: &dyn Request, host: &dyn Host) -> Verdict {
        self.judge(host, |engine| {
            let verdict = engine.decide(request, &self.clock(host));
            if engine.is_hot() && !matches!(verdict, Verdict::Refuse(_)) {
                mark(engine, host);
            }
            verdict
        })
    }

    /// The same, about one that has waited for an answer that was of no use.
    fn decide_again(&self, resumed: &Resumed, explains: bool, host: &dyn Host) -> Verdict {
        self.judge(host, |engine| {
            let mut verdict = Verdict::pass();
            engine.explain(explains);
            host.read(self.reads_headers, &mut |request| {
                verdict = engine.decide_again(resumed, request, &self.clock(host));
            });
            engine.explain(false);
            verdict
        })
    }

    /// Decides about a request whose answer has come, of the stream that was entered; whether an operator asks about it.
    pub(crate) fn resume(
        &self,
        resumed: &Resumed,
        now: Now,
        explains: bool,
        host: &dyn Host,
    ) -> Verdict {
        let verdict = self.with_engine(host, |engine| {
            engine.explain(explains);
            let verdict = engine.resume(resumed, now);
            engine.explain(false);
            verdict
        });
        verdict.flatten().unwrap_or_else(|| self.decide_again(resumed, explains, host))
    }

    fn judge(&self, host: &dyn Host, judge: impl FnOnce(&mut Engine) -> Verdict) -> Verdict {
        // The host never calls about one stream while it is in a call about another.
        let Ok(mut engine) = self.engine.try_borrow_mut() else {
            host.log(Level::Error, "a request was not judged: another one still is");
            return Verdict::pass();
        };
        judge(&mut engine)
    }

    /// The requests that wait for an answer.
    pub(crate) fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// Lets the engine do something, unless it is in a call.
    pub(crate) fn with_engine<T>(
        &self,
        host: &dyn Host,
        act: impl FnOnce(&mut Engine) -> T,
    ) -> Option<T> {
        let were_away = self.away();
        let done = self.engine.try_borrow_mut().ok().map(|mut engine| act(&mut engine));
        if self.away() != were_away {
            // The metrics tell it, even if no request comes.
            self.begin_upkeep(host);
        }
        done
    }

    pub(crate) fn now(&self, host: &dyn Host) -> Now {
        self.clock(host).now()
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// When there is something to do the next time.
    pub(crate) fn next(&self, now: Micros) -> Option<Micros> {
        if self.answered() > 0 {
            return Some(now);
        }
        let engine = self.engine.try_borrow().ok().and_then(|engine| engine.next(now));
        [engine, self.upkeep.get()].into_iter().flatten().min()
    }

    /// What its rules have in shared data.
    pub(crate) fn remains(&self, host: &dyn Host) -> Vec<Remains> {
        let remains =
            |engine: &Engine| engine.remains(&self.namespace, &host.data(), host.monotonic());
        self.engine.try_borrow().map(|engine| remains(&engine)).unwrap_or_default()
    }

    #[inline(never)]
    fn redis_is_pressed(&self) -> bool {
        let is_pressed = |redis: &Handle| redis.has_operations() || redis.away() > 0;
        self.redis(is_pressed).unwrap_or(false)
    }

    /// What is known of Redis, if there is one.
    fn redis<T>(&self, read: impl FnOnce(&Handle) -> T) -> Option<T> {
        let engine = self.has_redis.then(|| self.engine.try_borrow().ok()).flatten()?;
        Some(read(&engine.redis()))
    }

    fn clock<'a>(&'a self, host: &'a dyn Host) -> Clocks<'a> {
        Clocks { offset: &self.offset, host, namespace: &self.namespace }
    }
}

/// Marks the request in hand for every rule whose caller is hot.
#[inline(never)]
fn mark(engine: &Engine, host: &dyn Host) {
    for (header, rule) in engine.marks() {
        host.mark(header, rule);
    }
}
