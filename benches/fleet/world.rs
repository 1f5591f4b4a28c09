//! A fleet on one clock, as a queue of events: gateways of several workers, Redis, the network between them, and callers.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use diana_algorithm::{Algorithm, REGISTRY};
use diana_policy::Quota;
use diana_policy::time::{Micros, Now, SECOND, Unit};
use fastrand::Rng;
use kit::fake::FakeSharedData;

use crate::network::{Call, Network, Reply};
use crate::worker::{Done, Worker};

/// The time of Redis's clock at the beginning.
pub const EPOCH: Micros = 1_700_000_000 * SECOND;
/// Of each gateway.
const WORKERS: usize = 4;

/// A fleet, its rule, and its requests.
#[derive(Debug, Clone)]
pub struct Plan {
    pub gateways: usize,
    pub algo: &'static str,
    /// Permits per unit: for all callers together or, with more than one caller, for each.
    pub rpu: u64,
    pub unit: Unit,
    pub asks_after: bool,
    pub callers: u32,
    /// The n-th caller sends 1 / n to the power of this as many requests as the first one.
    pub zipf: f64,
    /// Requests per second, at random times.
    pub demand: u64,
    /// Per cent of them that the first gateway gets; all gateways share the rest.
    pub skew: u8,
    pub seconds: u64,
    /// The time in which gateways join one after another, which until then get no requests.
    pub joins: Micros,
    /// The mean time to Redis and back, and by how many per cent a call may differ from it.
    pub latency: Micros,
    pub spread: u64,
    pub timeout: Micros,
    /// Of a thousand calls, those that get lost.
    pub lost: u64,
    /// In each second, Redis gets no calls for this long.
    pub away: Micros,
    /// Primaries of one processor each behind Envoy's proxy; otherwise a single Redis with as many processors as it needs.
    pub shards: Option<usize>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            gateways: 10,
            algo: "TB",
            rpu: 10_000,
            unit: Unit::Second,
            asks_after: false,
            callers: 1,
            zipf: 0.0,
            demand: 20_000,
            skew: 0,
            seconds: 30,
            joins: 0,
            latency: 1000,
            spread: 50,
            timeout: 20_000,
            lost: 0,
            away: 0,
            shards: None,
        }
    }
}

impl Plan {
    /// A rate, over the time in which the whole fleet gets as many requests.
    pub fn a_second(&self, count: f64) -> u64 {
        (count * SECOND as f64 / (self.seconds * SECOND - self.joins / 2) as f64) as u64
    }

    /// Panics if the fleet has admitted more than the limit although no gateway counted alone; or if one did, or permits stayed
    /// unused, although Redis replied in time. A request of one of many callers that waits may find a permit that it would not have
    /// found at once.
    fn check(&self, seen: &Seen) {
        let over = if self.asks_after { seen.over } else { 0 };
        let most = seen.counted + over + if self.callers > 1 { seen.counted / 1000 } else { 0 };
        let in_time = seen.admitted - seen.late;
        assert!(seen.alone > 0 || in_time <= most, "{in_time} of {most} permits: {self:?}");
        if self.away > 0 {
            // Each gateway may have a block for what it gets in 20 ms, and a question of each worker under way.
            let more = self.demand / 50 + (self.gateways * WORKERS) as u64;
            let most = most * 110 / 100 + more;
            assert!(in_time <= most, "{in_time} of {most} permits: {self:?}");
        }
        let is_near = self.latency * (100 + self.spread) / 100 + 1000 < self.timeout;
        if is_near && self.lost + self.away == 0 && self.shards.is_none() {
            assert_eq!(seen.alone, 0, "{self:?}");
            let rate = self.rpu * SECOND / Quota::new(self.unit, self.rpu).period();
            if self.callers == 1 && self.demand * 5 <= rate * 4 {
                let refused = seen.requests - seen.admitted;
                assert!(refused * 1000 <= seen.requests, "{refused} are refused: {self:?}");
            }
            // SW returns permits slice by slice, each a round trip late.
            let least = match (self.algo, self.gateways) {
                ("SW", _) => 95,
                (_, ..=100) => 99,
                // Each holds permits of a bucket for some requests.
                _ => 97,
            };
            assert!(
                seen.admitted >= most * least / 100,
                "{} of {most} permits: {self:?}",
                seen.admitted
            );
        }
    }

    /// The rule, for one counter without leases.
    fn algorithm(&self) -> Arc<dyn Algorithm> {
        let entry = REGISTRY.iter().find(|entry| entry.short == self.algo).unwrap();
        (entry.build)(&Quota::new(self.unit, self.rpu)).unwrap()
    }
}

/// The results of a simulation.
#[derive(Default)]
pub struct Seen {
    pub requests: u64,
    /// Requests that the fleet admitted, and those that one counter without leases would.
    pub admitted: u64,
    pub counted: u64,
    /// Requests that the fleet admitted after the end, which the counter did not see.
    pub late: u64,
    /// Requests that the fleet has admitted in the end and that the counter refused: of all callers, and of one at most.
    pub over: u64,
    pub most_over: u64,
    /// The times that requests waited for Redis, sorted.
    pub waits: Vec<Micros>,
    /// Requests to gateways that counted alone.
    pub alone: u64,
    /// Calls to Redis, those that failed in whole or in part, and the asks in them.
    pub calls: u64,
    pub failed: u64,
    pub asks: u64,
    /// The time that processors of Redis were busy.
    pub busy: f64,
}

enum Event {
    /// A request of a random caller to a random worker.
    Request,
    Tick,
    Arrival(Call),
    Reply(Reply),
}

pub struct World<'a> {
    plan: &'a Plan,
    rng: Rng,
    workers: Vec<Worker>,
    network: Network<'a>,
    /// By time, then in the order in which they were added.
    events: BTreeMap<(Micros, u64), (usize, Event)>,
    added: u64,
    /// The time of the latest event.
    now: Micros,
    /// The cumulated shares of the callers.
    shares: Vec<f64>,
    counter: Arc<dyn Algorithm>,
    states: HashMap<u32, Box<[u64]>>,
    seen: Seen,
    /// By caller, how many requests more the fleet has admitted than the counter, and at most.
    ahead: HashMap<u32, (i64, i64)>,
}

impl<'a> World<'a> {
    pub fn new(plan: &'a Plan) -> World<'a> {
        let mut rng = Rng::with_seed(1);
        let mut workers = Vec::new();
        for _ in 0..plan.gateways {
            // Clocks of different machines differ; windows begin at the same times.
            let wall = EPOCH + 3600 * SECOND * rng.u64(0..3);
            let clocks = Now { mono: rng.u64(0..1 << 40), wall };
            let (data, random) = (Rc::new(FakeSharedData::default()), rng.u64(1..u64::MAX - 4));
            let start = |number| Worker::new(plan, clocks, data.clone(), random + number as u64);
            workers.extend((0..WORKERS).map(start));
        }
        let mut sum = 0.0;
        let weights = (1..=plan.callers).map(|n| f64::from(n).powf(-plan.zipf));
        let shares = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        let (network, counter) = (Network::new(plan), plan.algorithm());
        let (events, states, seen) = (BTreeMap::new(), HashMap::new(), Seen::default());
        let (added, now, ahead) = (0, 0, HashMap::new());
        World {
            plan,
            rng,
            workers,
            network,
            events,
            added,
            now,
            shares,
            counter,
            states,
            seen,
            ahead,
        }
    }

    pub fn run(mut self) -> Seen {
        (0..self.workers.len()).for_each(|worker| self.after(worker, Vec::new(), 0));
        self.add(0, 0, Event::Request);
        let end = self.plan.seconds * SECOND;
        // Requests that wait at the end get their replies.
        while let Some(((now, _), (worker, event))) = self.events.pop_first()
            && now <= end + SECOND
        {
            assert!(now >= self.now, "an event at {now}, after {}: {:?}", self.now, self.plan);
            self.now = now;
            match event {
                Event::Request if now >= end => {}
                Event::Request => {
                    let mean = SECOND as f64 / self.plan.demand as f64;
                    // Times are whole ticks; random rounding keeps the mean.
                    let gap = -mean * (1.0 - self.rng.f64()).ln() + self.rng.f64();
                    self.add(now + gap as Micros, 0, Event::Request);
                    self.request(now);
                }
                Event::Tick if self.workers[worker].wakes == Some(now) => {
                    self.workers[worker].wakes = None;
                    let done = self.workers[worker].tick(now);
                    self.after(worker, done, now);
                }
                Event::Tick => {}
                Event::Arrival(call) => {
                    if let Some((at, reply)) = self.network.arrive(call, now, &mut self.rng) {
                        self.add(at, worker, Event::Reply(reply));
                    }
                }
                Event::Reply(reply) => {
                    let done = self.workers[worker].reply(&reply, now);
                    self.after(worker, done, now);
                }
            }
        }
        let Network { calls, failed, busy, .. } = self.network;
        self.seen.waits.sort_unstable();
        for (caller, (now, most)) in std::mem::take(&mut self.ahead) {
            self.seen.over += now.max(0) as u64;
            self.seen.most_over = self.seen.most_over.max(most as u64);
            // Gateways that decide before Redis is asked never admit more than the limit each.
            let bound = (self.plan.gateways - 1) as u64 * self.plan.rpu;
            assert!(most as u64 <= bound, "{most} of caller {caller}: {:?}", self.plan);
        }
        let seen = Seen { calls, failed, busy, asks: self.network.proxy.asks(), ..self.seen };
        self.plan.check(&seen);
        seen
    }

    fn request(&mut self, now: Micros) {
        let at = self.rng.f64() * self.shares.last().copied().unwrap_or(1.0);
        let caller = self.shares.partition_point(|sum| *sum <= at) as u32;
        let first = self.rng.u8(0..100) < self.plan.skew;
        let gateway = if first { 0 } else { self.rng.usize(0..self.plan.gateways) };
        let worker = gateway * WORKERS + self.rng.usize(0..WORKERS);
        if now * (self.plan.gateways as u64) < gateway as u64 * self.plan.joins {
            return;
        }
        self.seen.requests += 1;
        if self.count(caller, now) {
            self.seen.counted += 1;
            self.goes_ahead(caller, -1);
        }
        self.seen.alone += u64::from(self.workers[worker].is_alone(caller));
        let done = self.workers[worker].request(caller, now);
        self.after(worker, done, now);
    }

    /// Notes that the fleet, or the counter, admits a request.
    fn goes_ahead(&mut self, caller: u32, by: i64) {
        if self.plan.asks_after {
            let (now, most) = self.ahead.entry(caller).or_default();
            *now += by;
            *most = (*most).max(*now);
        }
    }

    /// Counts a request without leases. Returns true if it is admitted.
    fn count(&mut self, caller: u32, now: Micros) -> bool {
        let new = || vec![0; self.counter.properties().words].into();
        let state: &mut Box<[u64]> = self.states.entry(caller).or_insert_with(new);
        let (mut next, at) = (state.clone(), Now { mono: EPOCH + now, wall: EPOCH + now });
        let fits = self.counter.step(state, at, 0, 1, &mut next).is_admitted();
        if fits {
            *state = next;
        }
        fits
    }

    /// Records decisions of a worker, sends its calls, and sets its timer.
    fn after(&mut self, number: usize, done: Vec<Done>, now: Micros) {
        for Done { caller, is_admitted, waited } in done {
            if is_admitted {
                self.seen.admitted += 1;
                self.goes_ahead(caller, 1);
            }
            self.seen.late += u64::from(is_admitted && now >= self.plan.seconds * SECOND);
            self.seen.waits.extend(waited);
        }
        for (token, call) in self.workers[number].calls() {
            let (call, no_reply) = self.network.send(token, call, now, &mut self.rng);
            if let Some(call) = call {
                self.add(call.arrives, number, Event::Arrival(call));
            }
            if let Some((at, reply)) = no_reply {
                self.add(at, number, Event::Reply(reply));
            }
        }
        let wakes = self.workers[number].fires();
        if wakes != self.workers[number].wakes {
            self.workers[number].wakes = wakes;
            if let Some(at) = wakes {
                self.add(at, number, Event::Tick);
            }
        }
    }

    fn add(&mut self, at: Micros, worker: usize, event: Event) {
        self.added += 1;
        self.events.insert((at, self.added), (worker, event));
    }
}
