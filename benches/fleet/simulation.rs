//! A fleet in simulated time: gateways of several workers, each with the real code, a Redis, the
//! network between them, and callers. Equal seeds produce equal histories.

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

/// The initial time of Redis's clock.
const EPOCH: Micros = 1_700_000_000 * SECOND;

/// An event of a worker.
enum Event {
    /// Its timer fires.
    Tick,
    /// A response arrives.
    Answer(Response),
    /// One of its calls reaches Redis.
    Call(network::Call),
    /// A request of a caller arrives.
    Request(u32),
}

/// Runs a simulation with the model in place of one or several Redis.
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
    /// The instant, a sequence number and the worker of each event. Events of the same instant
    /// occur in the order of scheduling.
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
            // The clocks of different machines differ. Windows begin at the same instants.
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

    /// Runs to the end. Returns the measurements.
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
        // Charges until then still get their replies.
        while self.order.peek().is_some_and(|Reverse((at, ..))| *at <= self.plan.end() + SECOND) {
            self.next_event();
        }
        self.watch.end(&self.plan, &self.network)
    }

    /// Ticks until the next request.
    fn gap(&mut self) -> Micros {
        let Range { start, end } = self.plan.pulse;
        let mean = (end - start) as f64 / self.plan.demand as f64;
        // Rounds to whole ticks at random, to keep the mean.
        (-mean * (1.0 - self.rng.f64()).ln() + self.rng.f64()) as Micros
    }

    /// The next instant with requests.
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
        // The gateway has not joined yet.
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
            // A host that was stopped processes earlier data before it reads its clock.
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

    /// Processes the effects of a worker's event.
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
