//! A fleet on one clock that nobody has to wait for: gateways of several workers, each an engine of the
//! real core, a Redis, the way between them, and callers. The same seed plays the same again.

mod crowd;
pub mod fullest;
pub mod network;
pub mod plan;
pub mod seen;
mod watch;
mod worker;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use diana_policy::time::{Micros, Now, SECOND};
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::model;

use crowd::Crowd;
use network::{Network, Redis};
use plan::Plan;
use seen::Seen;
use watch::Watch;
use worker::{Done, Gateway, Response, Worker};

/// What Redis's clock shows at the beginning.
const EPOCH: Micros = 1_700_000_000 * SECOND;

/// Something that happens to a worker.
enum Event {
    /// The host calls it.
    Tick,
    /// An answer comes.
    Answer(Response),
    /// A call of it reaches Redis.
    Call(network::Call),
    /// A request of a caller comes.
    Request(u32),
}

/// What there is to see with the model in place of Redis, one or several.
pub fn run(plan: &Plan) -> Seen {
    match plan.line.proxy {
        None => Simulation::new(plan, model::redis::Redis::default()).run(),
        Some(_) => Simulation::new(plan, model::proxy::Proxy::default()).run(),
    }
}

pub struct Simulation<R> {
    plan: Plan,
    rng: Rng,
    crowd: Crowd,
    workers: Vec<Worker>,
    network: Network<R>,
    /// When, and to whom: what happens at the same instant happens in the order in which that was clear.
    order: BinaryHeap<Reverse<(Micros, u64, usize)>>,
    events: HashMap<u64, Event>,
    number: u64,
    watch: Watch,
}

impl<R: Redis> Simulation<R> {
    pub fn new(plan: &Plan, redis: R) -> Simulation<R> {
        let mut rng = Rng::with_seed(plan.seed);
        let mut workers = Vec::new();
        for number in 0..plan.gateways {
            // Clocks of different machines tell different times; windows begin at the same instants.
            let hours = 3600 * SECOND * rng.u64(0..3);
            let clocks = Now { mono: rng.u64(0..1 << 40), wall: EPOCH + hours };
            let data = Rc::new(FakeSharedData::default());
            let gateway = Rc::new(Gateway { number, clocks, data });
            let random = rng.u64(1..);
            for _ in 0..plan.workers {
                workers.push(Worker::new(plan, gateway.clone(), random));
            }
        }
        Simulation {
            crowd: Crowd::zipf(plan.callers, plan.zipf),
            network: Network::new(plan, redis),
            watch: Watch::new(plan),
            plan: plan.clone(),
            rng,
            workers,
            order: BinaryHeap::new(),
            events: HashMap::new(),
            number: 0,
        }
    }

    /// Lets time pass until the end. What was seen.
    pub fn run(mut self) -> Seen {
        let mut request = self.in_pulse(0);
        while request < self.plan.end() {
            match self.order.peek() {
                Some(Reverse((at, ..))) if *at <= request => self.next_event(),
                _ => {
                    self.request(request);
                    let next = request + self.gap();
                    request = self.in_pulse(next);
                }
            }
        }
        // What was charged by then has its answer some time.
        while self.order.peek().is_some_and(|Reverse((at, ..))| *at <= self.plan.end() + SECOND) {
            self.next_event();
        }
        self.watch.end(&self.plan, &self.network)
    }

    /// Ticks until the next request.
    fn gap(&mut self) -> Micros {
        let Range { start, end } = self.plan.pulse;
        let mean = (end - start) as f64 / self.plan.demand as f64;
        // Instants are whole ticks; what is cut off comes at random.
        (-mean * (1.0 - self.rng.f64()).ln() + self.rng.f64()) as Micros
    }

    /// The first instant from then on at which requests come.
    fn in_pulse(&self, now: Micros) -> Micros {
        let Range { start, end } = self.plan.pulse;
        match now % SECOND {
            early if early < start => now - early + start,
            late if late >= end => now - late + SECOND + start,
            _ => now,
        }
    }

    fn request(&mut self, now: Micros) {
        let caller = self.crowd.pick(&mut self.rng);
        let first = self.rng.u8(0..100) < self.plan.skew;
        let gateway = if first { 0 } else { self.rng.usize(0..self.plan.gateways) };
        // It comes where nobody is yet.
        if now * (self.plan.gateways as u64) < gateway as u64 * self.plan.joins {
            return;
        }
        let number = gateway * self.plan.workers + self.rng.usize(0..self.plan.workers);
        match self.plan.goes_on(number, now) {
            then if then > now => self.add(then, number, Event::Request(caller)),
            _ => self.arrive(caller, number, now),
        }
    }

    fn arrive(&mut self, caller: u32, number: usize, now: Micros) {
        self.watch.request(caller, self.workers[number].alone(caller).is_some(), now);
        let done = self.workers[number].request(caller, now);
        self.after(number, done, now);
    }

    fn next_event(&mut self) {
        let Some(Reverse((now, event, number))) = self.order.pop() else { return };
        let then = self.plan.goes_on(number, now);
        match self.events.get(&event) {
            Some(Event::Call(_)) => {}
            // A host that stood still reads what has come before it looks at its clock.
            Some(Event::Tick) if then > now => {
                return self.order.push(Reverse((then + 1, event, number)));
            }
            _ if then > now => return self.order.push(Reverse((then, event, number))),
            _ => {}
        }
        let done = match self.events.remove(&event) {
            Some(Event::Tick) => {
                let worker = &mut self.workers[number];
                if worker.called.is_none_or(|at| at > now) {
                    return;
                }
                worker.called = None;
                worker.tick(now)
            }
            Some(Event::Answer(response)) => self.workers[number].answer(&response, now),
            Some(Event::Request(caller)) => return self.arrive(caller, number, now),
            Some(Event::Call(call)) => {
                let (at, response) = self.network.arrive(call, now, &mut self.rng);
                return self.add(at, number, Event::Answer(response));
            }
            None => return,
        };
        self.after(number, done, now);
    }

    /// What follows from what a worker did.
    fn after(&mut self, number: usize, done: impl IntoIterator<Item = Done>, now: Micros) {
        let worker = &self.workers[number];
        let gateway = worker.gateway.number;
        for done in done {
            self.watch.decided(gateway, done);
        }
        for (token, call) in worker.calls() {
            let (at, event) = match self.network.leave(gateway, token, call, now, &mut self.rng) {
                network::Fate::Arrives(at, call) => (at, Event::Call(call)),
                network::Fate::Lost(at, response) => (at, Event::Answer(response)),
            };
            self.add(at, number, event);
        }
        let worker = &mut self.workers[number];
        let fires = worker.fires();
        if fires != worker.called
            && let Some(at) = fires
        {
            worker.called = Some(at);
            self.add(at, number, Event::Tick);
        }
    }

    fn add(&mut self, at: Micros, worker: usize, event: Event) {
        self.number += 1;
        self.order.push(Reverse((at, self.number, worker)));
        self.events.insert(self.number, event);
    }
}
