//! An instance: one configuration in one worker, shared by its root and its streams.

mod upkeep;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::clock::{ClockOffset, HostClock};
use super::host::{Host, Level};
use super::operator::Operator;
use super::redis::{RedisAccess, RedisConnection};
use diana_limiter::{Limiter, ReadyRequest, Verdict};
use diana_policy::Policy;
use diana_policy::key::{GatewayId, Key, Seed};
use diana_policy::port::{Clock, Request, SharedData};
use diana_policy::time::{Micros, Now};
use diana_store::backend::Backend;
use diana_store::permit::Permit;
use diana_store::reclaimer::SlotReclaimer;
use diana_store::stores::Stores;
use diana_store::tables::Tables;

/// Data that a worker keeps for all of its instances, and the number of the next one.
pub(crate) struct WorkerData<'a> {
    pub(crate) tables: &'a mut Tables,
    pub(crate) offset: Rc<ClockOffset>,
    pub(crate) number: u32,
}

/// A limiter with its access for operators and the schedule of its upkeep.
pub struct Instance {
    /// The host's number of the root.
    root: u32,
    /// Identifies the instance in the worker.
    pub(crate) number: u32,
    offset: Rc<ClockOffset>,
    limiter: RefCell<Limiter>,
    reads_headers: bool,
    reads_request_bytes: bool,
    /// Headers that only this filter may set, in lower case.
    marks: Vec<Rc<str>>,
    /// Whether a rule that may refuse or mark requests depends on the route.
    enforces_by_route: bool,
    /// The origin of its rules, and the wall-clock time since when they apply.
    origin: (&'static str, Micros),
    /// The checksum of its document.
    checksum: u32,
    /// The access of operators, if configured.
    operator: Option<Box<Operator>>,
    /// The interval of upkeep in ticks.
    interval: Micros,
    namespace: Rc<str>,
    /// Redis, if it counts for the fleet.
    redis: Option<RedisConnection>,
    /// The number of gateways that its configuration server reports, at first 1.
    gateways: Rc<Cell<u64>>,
    /// The time of the next upkeep. `None` while none is needed.
    next_maintenance: Cell<Option<Micros>>,
    /// Whether it has returned its leases and counts since its last request.
    closed: Cell<bool>,
    /// Whether its namespace has a later instance.
    is_replaced: Cell<bool>,
    /// The requests that it saw since the last flush.
    requests: Cell<u64>,
    /// The waits for Redis since then, in ticks.
    waits: RefCell<Vec<Micros>>,
    /// Whether its charges have changed since the last upkeep, apart from new requests.
    busy: Cell<bool>,
    /// The time of the latest upkeep with a request since the one before.
    last_used: Cell<Micros>,
}

impl Instance {
    pub(crate) fn new(
        namespace: Rc<str>,
        policy: Policy,
        redis: Option<RedisAccess>,
        worker: WorkerData<'_>,
        host: &dyn Host,
    ) -> Result<Instance, String> {
        let data = host.data();
        let seed = agree_on_seed(&namespace, &*data, host);
        let operator = Operator::new(&policy, seed, host);
        let source = if policy.is_remote { "remote" } else { "local" };
        let redis = redis.map(|redis| {
            // Redis identifies each client by its name, which must be unique even if the host has
            // no random numbers.
            let random = host.random() as u64 ^ u64::from(worker.number) << 32;
            redis.open(&namespace, &policy, data.clone(), seed, random)
        });
        let checksum = policy.checksum;
        let mut stores = Stores::new(namespace.clone(), data, worker.tables);
        let clock = HostClock { offset: &worker.offset, host, namespace: &namespace };
        stores.process = host.process().map(|process| (process, clock.now()));
        let gateways = stores.gateways.clone();
        let backend = redis.clone().map(|redis| Box::new(redis) as Box<dyn Backend>);
        let is_disabled = policy.disabled;
        let limiter = Limiter::new(policy, seed, stores, backend)
            .map_err(|unbuildable| unbuildable.to_string())?;
        if is_disabled {
            // Not even a heartbeat: this gateway takes no share of any limit.
            redis.iter().for_each(RedisConnection::stop_probing);
        }
        Ok(Instance {
            root: host.caller(),
            number: worker.number,
            offset: worker.offset,
            reads_headers: limiter.reads_headers() || operator.is_some(),
            reads_request_bytes: limiter.reads_request_bytes(),
            operator,
            origin: (source, host.wall()),
            checksum,
            marks: limiter.markers().to_vec(),
            enforces_by_route: limiter.enforces_by_route(),
            interval: limiter.tick_interval(),
            limiter: RefCell::new(limiter),
            redis,
            gateways,
            next_maintenance: Cell::new(None),
            closed: Cell::new(false),
            is_replaced: Cell::new(false),
            requests: Cell::new(0),
            waits: RefCell::default(),
            busy: Cell::new(false),
            last_used: Cell::new(0),
            namespace,
        })
    }

    /// Identifies this gateway in answers to operators, if there are any.
    pub(crate) fn gateway(&self) -> Option<GatewayId> {
        self.operator.as_ref().map(|operator| operator.gateway())
    }

    /// The host's number of its root.
    #[must_use]
    #[inline(always)]
    pub fn root(&self) -> u32 {
        self.root
    }

    /// Returns true if it decides about no request.
    pub(crate) fn is_disabled(&self) -> bool {
        self.limiter.try_borrow().is_ok_and(|limiter| limiter.is_disabled())
    }

    /// Returns true if headers other than the path are read.
    #[must_use]
    #[inline(always)]
    pub fn reads_headers(&self) -> bool {
        self.reads_headers
    }

    /// Returns true if the bytes of a request's body are read at its end, for one of these charges, or for any rule if its
    /// charges are not known.
    #[inline]
    pub(crate) fn reads_request_bytes(&self, charges: Option<&mut Permit>) -> bool {
        let reads = |charges| {
            let limiter = self.limiter.try_borrow();
            limiter.is_ok_and(|limiter| limiter.reads_request_bytes_of(charges))
        };
        self.reads_request_bytes && charges.is_none_or(reads)
    }

    /// Headers that only this filter may set, in lower case.
    #[must_use]
    #[inline(always)]
    pub fn marks(&self) -> &[Rc<str>] {
        &self.marks
    }

    /// Returns true if a rule that may refuse or mark requests depends on the route.
    #[must_use]
    pub fn enforces_by_route(&self) -> bool {
        self.enforces_by_route
    }

    /// The number of shards of Redis that are unavailable, so that this gateway is in degraded mode
    /// for them.
    #[must_use]
    pub fn unavailable_shards(&self) -> usize {
        self.redis.as_ref().map_or(0, Backend::unavailable_shards)
    }

    /// Returns true if this gateway is in degraded mode for a caller of a `global` rule.
    #[must_use]
    pub fn is_degraded(&self, caller: Key) -> bool {
        self.redis.as_ref().is_some_and(|redis| redis.is_degraded(caller))
    }

    /// The last known number of gateways that share the `global` limits while Redis does not count.
    #[must_use]
    pub fn gateways(&self) -> u64 {
        self.redis.as_ref().map_or(self.gateways.get(), RedisConnection::gateways)
    }

    /// Takes the number of gateways that the configuration server reports.
    pub(crate) fn set_gateways(&self, gateways: u64) {
        if self.gateways.replace(gateways) != gateways
            && let Some(redis) = &self.redis
        {
            redis.set_least_gateways(gateways);
        }
    }

    /// The number of requests with a reply that have not been resumed, since one call of the host
    /// resumes a limited number.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.limiter.try_borrow().map_or(0, |limiter| limiter.ready())
    }

    /// Returns true if there is work for Redis that its timer may not know of.
    #[inline(always)]
    pub(crate) fn has_fleet_work(&self) -> bool {
        self.redis.as_ref().is_some_and(RedisConnection::has_work)
    }

    /// The origin of its rules, and the wall-clock time since when they apply.
    pub(crate) fn origin(&self) -> (&'static str, Micros) {
        self.origin
    }

    /// The access of operators, if configured.
    pub(crate) fn operator(&self) -> Option<&Operator> {
        self.operator.as_deref()
    }

    /// Returns true if a request may come from an operator.
    #[inline(always)]
    pub(crate) fn has_operator(&self) -> bool {
        self.operator.is_some()
    }

    /// Decides about the request of the host's current call, with the host's number of its stream.
    /// Marks the request of a hot caller unless it is refused, before Envoy selects its route.
    pub(crate) fn decide(&self, request: &dyn Request, stream: u32, host: &dyn Host) -> Verdict {
        self.decide_with(host, |limiter| limiter.decide(request, stream, &self.clock(host)))
    }

    /// As `Instance::decide`, with an explanation for an operator.
    pub fn decide_explained(&self, request: &dyn Request, stream: u32, host: &dyn Host) -> Verdict {
        let clock = self.clock(host);
        self.decide_with(host, |limiter| limiter.decide_explained(request, stream, &clock))
    }

    /// Decides about a request after a reply of Redis.
    pub(crate) fn resume(
        &self,
        ready: &mut ReadyRequest,
        request: &dyn Request,
        host: &dyn Host,
    ) -> Verdict {
        let now = self.now(host);
        let verdict = self.with_limiter(host, |limiter| limiter.resume(ready, now)).flatten();
        verdict.unwrap_or_else(|| {
            self.decide_with(host, |limiter| limiter.restart(ready, request, &self.clock(host)))
        })
    }

    fn decide_with(
        &self,
        host: &dyn Host,
        decide: impl FnOnce(&mut Limiter) -> Verdict,
    ) -> Verdict {
        // The host never calls about one stream during a call about another.
        let Ok(mut limiter) = self.limiter.try_borrow_mut() else {
            host.log(
                Level::Error,
                "a request was admitted without a check: the host called during another call",
            );
            return Verdict::pass();
        };
        decide(&mut limiter)
    }

    /// Calls the limiter, unless one of its calls is in progress.
    pub(crate) fn with_limiter<T>(
        &self,
        host: &dyn Host,
        act: impl FnOnce(&mut Limiter) -> T,
    ) -> Option<T> {
        let were_unavailable = self.unavailable_shards();
        let done = self.limiter.try_borrow_mut().ok().map(|mut limiter| act(&mut limiter));
        if self.unavailable_shards() != were_unavailable {
            // The metrics report the change, even without a request.
            self.schedule_maintenance(host);
        }
        done
    }

    /// Calls the connection to Redis, unless a call of the limiter is in progress, and then passes
    /// the results on.
    pub(crate) fn with_redis<T>(
        &self,
        now: Now,
        host: &dyn Host,
        act: impl FnOnce(&RedisConnection) -> T,
    ) -> Option<T> {
        let redis = self.redis.as_ref()?;
        self.with_limiter(host, |limiter| {
            let done = act(redis);
            limiter.take_results(now);
            done
        })
    }

    /// Logs changes of the state of Redis.
    pub(crate) fn log_fleet(&self, host: &dyn Host) {
        let lines = self.redis.as_ref().map(RedisConnection::take_log_lines).unwrap_or_default();
        lines.iter().for_each(|line| host.log(Level::Warn, line));
    }

    pub(crate) fn now(&self, host: &dyn Host) -> Now {
        self.clock(host).now()
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The time of the next work.
    pub(crate) fn next(&self, now: Micros) -> Option<Micros> {
        if self.ready() > 0 {
            return Some(now);
        }
        let redis = self.redis.as_ref().and_then(|redis| redis.next(now));
        [redis, self.next_maintenance.get()].into_iter().flatten().min()
    }

    /// The slots of its rules in shared data.
    pub(crate) fn remains(&self, host: &dyn Host) -> Vec<SlotReclaimer> {
        let remains =
            |limiter: &Limiter| limiter.remains(&self.namespace, &host.data(), host.monotonic());
        self.limiter.try_borrow().map(|limiter| remains(&limiter)).unwrap_or_default()
    }

    fn clock<'a>(&'a self, host: &'a dyn Host) -> HostClock<'a> {
        HostClock { offset: &self.offset, host, namespace: &self.namespace }
    }
}

/// The secret of this gateway. The first worker draws it and writes it to shared data.
fn agree_on_seed(namespace: &str, data: &dyn SharedData, host: &dyn Host) -> Seed {
    let key = format!("diana/1/{namespace}/seed");
    let known = || data.get(&key).and_then(|(bytes, _)| bytes.try_into().ok());
    let drawn = host.random().to_le_bytes();
    let agreed = match known() {
        Some(agreed) => agreed,
        None if data.swap(&key, &drawn, None) => drawn,
        None => known().unwrap_or(drawn),
    };
    let halves = u128::from_le_bytes(agreed);
    Seed { k0: halves as u64, k1: (halves >> 64) as u64 }
}
