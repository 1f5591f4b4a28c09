//! A fleet on one clock, as a queue of events. The same seed gives the same world.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;

use diana_policy::time::{Micros, SECOND};
use fastrand::Rng;
use kit::server::Server;

use super::network::{Network, Response, Sent, Way};
use super::node::{End, Gateway, Metrics, Order, StreamOutcome, Visit, Worker};
use super::oracle::{CheckedCounts, Oracle};
use super::plan::{CENTRE, Fault, MILLISECOND, Plan, REST, Reset};
use super::record::{Entry, Reach};
use super::rule::{Cost, Rule, Scope};

/// Starts a gateway of a plan with a seed, at a time, with a wall clock this number of hours ahead.
pub type Start = fn(&Plan, u64, Micros, u64) -> Box<dyn Gateway>;

/// The extent of the checks, all requests, and the metrics of each gateway at the end.
pub type Played = (CheckedCounts, Vec<Entry>, Vec<Metrics>);

enum Event {
    /// A random request to a random worker.
    Request,
    /// A given request to a given worker.
    Visit { worker: usize, visit: Visit },
    /// The timer of a worker fires.
    Tick { worker: usize, life: usize },
    /// A call reaches Redis.
    Arrival { worker: usize, life: usize, way: Way },
    /// A call is answered.
    Answer { worker: usize, life: usize, response: Response },
    /// The configuration centre answers.
    Document { worker: usize, life: usize, response: Response },
    /// A stream ends.
    End { worker: usize, life: usize, stream: u32, end: End },
    /// The fault with this index.
    Fault(usize),
    /// The end of a drain.
    Drained { gateway: usize, life: usize },
}

/// The subject of a draw in a scripted world.
#[derive(Debug, Clone, Copy)]
enum Draw {
    Request,
    Arrival,
    Call,
    End,
}

/// A worker, or the one that took its place.
struct WorkerSlot {
    gateway: usize,
    life: usize,
    worker: Rc<RefCell<dyn Worker>>,
    /// The scheduled time of its next timer.
    called: Option<Micros>,
    /// The number of calls that it has made.
    calls: u64,
    /// Streams that are open, and which requests they are.
    open: BTreeMap<u32, usize>,
}

/// A gateway, or the one that took its place.
struct GatewaySlot {
    life: usize,
    gateway: Box<dyn Gateway>,
    /// How often the document of each listener was changed.
    changes: Vec<usize>,
}

pub struct World<'a> {
    plan: &'a Plan,
    /// Whether to print all requests.
    pub prints_all: bool,
    /// Whether the draws about a request or a call are independent of all earlier events. Then two kinds of gateways get the same
    /// requests, even after they have decided differently.
    is_scripted: bool,
    rng: Rng,
    start: Start,
    network: Network<'a>,
    gateway_slots: Vec<GatewaySlot>,
    worker_slots: Vec<WorkerSlot>,
    lives: usize,
    order: BinaryHeap<Reverse<(Micros, u64)>>,
    events: BTreeMap<u64, Event>,
    number: u64,
    entries: Vec<Entry>,
    /// Of each gateway's life.
    reaches: BTreeMap<usize, Reach>,
    /// When each worker's life ended.
    deaths: BTreeMap<usize, Micros>,
    /// Lives of gateways that began to count alone, and when.
    degradations: Vec<(usize, Micros)>,
}

impl World<'_> {
    pub fn new<'a>(plan: &'a Plan, start: Start, server: &'a Server) -> World<'a> {
        let mut world = World {
            plan,
            prints_all: false,
            is_scripted: false,
            rng: Rng::with_seed(plan.seed ^ 1 << 63),
            start,
            network: Network::new(plan, server),
            gateway_slots: Vec::new(),
            worker_slots: Vec::new(),
            lives: 0,
            order: BinaryHeap::new(),
            events: BTreeMap::new(),
            number: 0,
            entries: Vec::new(),
            reaches: BTreeMap::new(),
            deaths: BTreeMap::new(),
            degradations: Vec::new(),
        };
        for gateway in 0..plan.gateways {
            let gateway_slot = world.start_gateway(0, vec![0; plan.listeners]);
            world.gateway_slots.push(gateway_slot);
            for _ in 0..plan.workers {
                let worker_slot = world.start_worker(gateway);
                world.worker_slots.push(worker_slot);
            }
        }
        world
    }

    fn start_gateway(&mut self, now: Micros, changes: Vec<usize>) -> GatewaySlot {
        self.lives += 1;
        let (seed, mut ahead) = (self.rng.u64(..), self.rng.u64(..3));
        if self.plan.wide.as_ref().is_some_and(|wide| wide.midnight > 0) {
            // Days end at the same instants by all clocks.
            ahead = 0;
        }
        let gateway = (self.start)(self.plan, seed, now, ahead);
        GatewaySlot { life: self.lives, gateway, changes }
    }

    fn start_worker(&mut self, gateway: usize) -> WorkerSlot {
        self.lives += 1;
        let gateway_slot = &mut self.gateway_slots[gateway];
        let changes = gateway_slot.changes.iter().enumerate();
        let documents: Vec<String> =
            changes.map(|(listener, changes)| self.plan.document(listener, *changes)).collect();
        let worker = gateway_slot.gateway.start(&documents);
        WorkerSlot {
            gateway,
            life: self.lives,
            worker,
            called: None,
            calls: 0,
            open: BTreeMap::new(),
        }
    }

    /// Runs all events, then the oracles.
    pub fn run(mut self) -> Played {
        let metrics = self.play();
        let World { plan, entries, reaches, deaths, degradations, .. } = &self;
        let (orders, entries) =
            entries.iter().cloned().partition(|entry| entry.visit.order.is_some());
        let (recoveries, checked) = (BTreeMap::new(), CheckedCounts::default());
        let checked =
            Oracle { plan, entries, orders, reaches, deaths, degradations, recoveries, checked }
                .check();
        (checked, self.entries, metrics)
    }

    /// Runs all events of a scripted world, without the oracles. Returns all requests, and the metrics of each gateway.
    pub fn history(mut self) -> (Vec<Entry>, Vec<Metrics>) {
        self.is_scripted = true;
        let metrics = self.play();
        (self.entries, metrics)
    }

    /// Runs all events. Returns the metrics of each gateway at the end.
    fn play(&mut self) -> Vec<Metrics> {
        for worker in 0..self.worker_slots.len() {
            self.collect(worker, 0);
        }
        for (number, fault) in self.plan.faults.iter().enumerate() {
            self.add(fault.span().start, Event::Fault(number));
        }
        for reset in self.plan.wide.iter().flat_map(|wide| &wide.resets) {
            let Reset { at, worker, entry, rule, caller } = *reset;
            let visit = self.order(&self.plan.entries[entry][rule], entry, caller, true);
            self.add(at, Event::Visit { worker, visit });
        }
        let first = self.gap();
        self.add(first, Event::Request);
        let last = self.probe();
        while let Some(Reverse((now, number))) = self.order.pop() {
            let event = self.events.remove(&number).expect("an event happens once");
            // A fleet that is at rest has timers and heartbeats for ever. Calls under way end.
            if now > last && !matches!(event, Event::Arrival { .. } | Event::Answer { .. }) {
                continue;
            }
            self.process(event, now);
        }
        let open: Vec<&BTreeMap<u32, usize>> =
            self.worker_slots.iter().map(|worker_slot| &worker_slot.open).collect();
        assert!(open.iter().all(|open| open.is_empty()), "streams are left: {open:?}");
        self.find_leaks();
        let metrics: Vec<Metrics> =
            self.gateway_slots.iter().map(|gateway_slot| gateway_slot.gateway.metrics()).collect();
        let is_split =
            metrics.iter().any(|metrics| metrics.keys().any(|it| it.ends_with(".split")));
        assert!(!is_split || self.plan.has_several_stores(), "there was one store at a time");
        if self.prints_all {
            self.entries.iter().for_each(|entry| println!("{entry:?}"));
            self.reaches.iter().for_each(|reach| println!("{reach:?}"));
        }
        metrics
    }

    /// Starts the draws about a request or a call.
    fn begin_draws(&mut self, about: Draw, number: u64) {
        if self.is_scripted {
            let mut rng = Rng::with_seed(self.plan.seed ^ number << 8 ^ about as u64);
            self.rng = rng.fork();
        }
    }

    /// # Panics
    /// If workers, hosts or Redis keep anything after the last request.
    fn find_leaks(&self) {
        for worker_slot in &self.worker_slots {
            let leaks = worker_slot.worker.borrow_mut().leaks();
            assert!(
                leaks.is_empty(),
                "a worker of gateway {} leaks {leaks:?}",
                worker_slot.gateway
            );
        }
        assert_eq!(self.network.leaks(), "", "keys that Redis keeps for ever");
        for (number, gateway_slot) in self.gateway_slots.iter().enumerate() {
            // A worker that died cannot correct the gauges.
            let workers = self.workers_of(number);
            let died = |fault: &Fault| matches!(fault, Fault::Dies { worker, .. } if workers.contains(worker));
            let mut open = gateway_slot.gateway.metrics();
            open.retain(|name, _| name.ends_with(".in_flight"));
            assert!(open.is_empty() || self.plan.faults.iter().any(died), "in flight: {open:?}");
        }
    }

    /// Adds requests in turn after everything has ended, which reveal lost permits. Returns when the last of them
    /// must be decided.
    fn probe(&mut self) -> Micros {
        let faults = self.plan.faults.iter().map(|fault| fault.span().end);
        let mut at = self.plan.ends.max(faults.max().unwrap_or(0)) + REST;
        for (entry, rules) in self.plan.entries.iter().enumerate() {
            let most = rules.iter().map(|rule| rule.most()).min().unwrap_or(0);
            for caller in 0..self.plan.callers.min(2) {
                for _ in 0..(most + 2).min(25) {
                    at += 7 * MILLISECOND;
                    let worker = self.rng.usize(..self.worker_slots.len());
                    let visit = self.visit_of(entry, caller, false);
                    self.add(at, Event::Visit { worker, visit });
                }
            }
        }
        at += REST;
        if self.plan.wide.as_ref().is_some_and(|wide| !wide.resets.is_empty()) {
            for (entry, rules) in self.plan.entries.iter().enumerate() {
                let worker_slots = rules.iter().filter(|rule| rule.algo == "P");
                for rule in worker_slots.filter(|rule| rule.scope != Scope::Local) {
                    let worker = self.rng.usize(..self.worker_slots.len());
                    let visit = self.order(rule, entry, 0, false);
                    self.add(at, Event::Visit { worker, visit });
                }
            }
        }
        at + 2 * SECOND
    }

    fn process(&mut self, event: Event, now: Micros) {
        match event {
            Event::Request => {
                if now < self.plan.ends {
                    self.begin_draws(Draw::Request, self.entries.len() as u64);
                    let next = now + self.gap();
                    self.add(next, Event::Request);
                    let first = self.rng.u8(..100) < self.plan.skew;
                    let worker = if first { 0 } else { self.rng.usize(..self.worker_slots.len()) };
                    let visit = self.visit();
                    self.arrive(worker, visit, now);
                }
            }
            Event::Visit { worker, visit } => self.arrive(worker, visit, now),
            Event::Tick { worker, life } => {
                // After a stall the host reads its sockets before it fires timers.
                if self.postpone(worker, now, 1, || Event::Tick { worker, life }) {
                    return;
                }
                let worker_slot = &mut self.worker_slots[worker];
                if worker_slot.life == life && worker_slot.called.is_some_and(|at| at <= now) {
                    worker_slot.called = None;
                    self.call(worker, now, |worker| worker.tick());
                }
            }
            Event::Arrival { worker, life, way } => {
                let (at, response) = self.network.arrive(way, now);
                self.add(at, Event::Answer { worker, life, response });
            }
            Event::Answer { worker, life, response } => {
                let until = self.stalled_until(worker, now);
                if until > now {
                    self.add(until, Event::Answer { worker, life, response });
                } else if self.worker_slots[worker].life == life {
                    self.record_reach(worker, &response, now);
                    let Response { token, status, body, .. } = response;
                    self.call(worker, now, |worker| worker.answer(token, status, &body));
                }
            }
            Event::Document { worker, life, response } => {
                let until = self.stalled_until(worker, now);
                if until > now {
                    self.add(until, Event::Document { worker, life, response });
                } else if self.worker_slots[worker].life == life {
                    let Response { token, status, body, .. } = response;
                    self.call(worker, now, |worker| worker.answer(token, status, &body));
                }
            }
            Event::End { worker, life, stream, end } => {
                if self.postpone(worker, now, 0, || Event::End { worker, life, stream, end }) {
                    return;
                }
                let worker_slot = &mut self.worker_slots[worker];
                if worker_slot.life != life {
                    return;
                }
                if let Some(request) = worker_slot.open.remove(&stream) {
                    let entry = &mut self.entries[request];
                    entry.ended = Some(now);
                    entry.used = match end {
                        End::Served(used) if entry.admitted().is_some() => Some(used),
                        End::Failed | End::Followed if entry.admitted().is_some() => Some(0),
                        _ => None,
                    };
                    // Some clients leave before the gateway has followed the redirect.
                    if end == End::Followed && self.rng.u8(..4) > 0 {
                        return self.follow(worker, stream, request, now);
                    }
                    let end = match end {
                        End::Served(used) => End::Served(used * self.plan.scale),
                        end => end,
                    };
                    let report = self.call(worker, now, |worker| worker.end(stream, end));
                    self.entries[request].report = report;
                }
            }
            Event::Fault(number) => self.fail(number, now),
            Event::Drained { gateway, life } => {
                if self.gateway_slots[gateway].life == life {
                    for worker in self.workers_of(gateway) {
                        let ended = self.act(worker, now, |worker| worker.end_drain());
                        for stream in ended {
                            let request = self.worker_slots[worker].open.remove(&stream);
                            request.into_iter().for_each(|it| self.entries[it].ended = Some(now));
                        }
                        self.collect(worker, now);
                    }
                }
            }
        }
    }

    fn fail(&mut self, number: usize, now: Micros) {
        match self.plan.faults[number].clone() {
            Fault::Dies { worker, .. } => self.replace(worker, now),
            Fault::Restarts { gateway, .. } => {
                let changes = self.gateway_slots[gateway].changes.clone();
                self.gateway_slots[gateway] = self.start_gateway(now, changes);
                self.workers_of(gateway).for_each(|worker| self.replace(worker, now));
            }
            Fault::Emptied { .. } => self.network.empty(now),
            Fault::Update { gateway, listener, drain, .. } => {
                self.gateway_slots[gateway].changes[listener] += 1;
                let changes = self.gateway_slots[gateway].changes[listener];
                let document = self.plan.document(listener, changes);
                for worker in self.workers_of(gateway) {
                    self.call(worker, now, |worker| worker.configure(listener, &document));
                }
                let life = self.gateway_slots[gateway].life;
                self.add(now + drain, Event::Drained { gateway, life });
            }
            Fault::Still { span, worker } => {
                // After the stall it may take answers for late.
                let life = self.gateway_slots[self.worker_slots[worker].gateway].life;
                self.reaches.entry(life).or_default().fail(span.start, span.end);
            }
            Fault::Failover { span } if now < span.end => {
                self.network.replicate(now);
                self.add(span.end, Event::Fault(number));
            }
            Fault::Failover { .. } => self.network.fail_over(now),
            Fault::Away { .. } | Fault::Loses { .. } | Fault::Split { .. } => {}
        }
    }

    /// Records whether a gateway reached Redis.
    fn record_reach(&mut self, worker: usize, response: &Response, now: Micros) {
        let life = self.gateway_slots[self.worker_slots[worker].gateway].life;
        let reach = self.reaches.entry(life).or_default();
        if response.is_whole && now < response.given_up {
            return reach.succeed(response.sent, now);
        }
        reach.fail(response.sent, now);
        let list = if response.was_taken { &mut reach.taken } else { &mut reach.untaken };
        list.push(now);
    }

    /// A worker dies with all its streams, and another one takes its place.
    fn replace(&mut self, worker: usize, now: Micros) {
        let gateway = self.worker_slots[worker].gateway;
        self.gateway_slots[gateway].gateway.set_time(now);
        let worker_slot = self.start_worker(gateway);
        let old = std::mem::replace(&mut self.worker_slots[worker], worker_slot);
        self.deaths.insert(old.life, now);
        for request in old.open.into_values() {
            let entry = &mut self.entries[request];
            (entry.is_lost, entry.ended) = (true, Some(now));
        }
        self.collect(worker, now);
    }

    fn workers_of(&self, gateway: usize) -> std::ops::Range<usize> {
        gateway * self.plan.workers..(gateway + 1) * self.plan.workers
    }

    /// End of the stall of a worker; `now` if it is running.
    fn stalled_until(&self, worker: usize, now: Micros) -> Micros {
        let mut until = now;
        for fault in &self.plan.faults {
            match fault {
                Fault::Still { span, worker: stalled }
                    if *stalled == worker && span.contains(&until) =>
                {
                    until = span.end;
                }
                _ => {}
            }
        }
        until
    }

    /// Moves an event behind the stall of a worker. Returns true if there is one.
    fn postpone(
        &mut self,
        worker: usize,
        now: Micros,
        by: Micros,
        event: impl Fn() -> Event,
    ) -> bool {
        let until = self.stalled_until(worker, now);
        if until > now {
            self.add(until + by, event());
        }
        until > now
    }

    /// Draws the next request.
    fn visit(&mut self) -> Visit {
        let entry = self.rng.usize(..self.plan.entries.len());
        // Some come much more often than others.
        let caller = self.rng.u32(..self.plan.callers).min(self.rng.u32(..self.plan.callers));
        let has_plans = self.plan.entries[entry].iter().any(|rule| rule.gold.is_some());
        let is_gold = has_plans && self.rng.bool();
        self.visit_of(entry, caller, is_gold)
    }

    fn order(&mut self, rule: &Rule, entry: usize, caller: u32, is_reset: bool) -> Visit {
        let order = Order { rule: rule.name.clone(), of_all: rule.of_all, is_reset };
        Visit { order: Some(order), ..self.visit_of(entry, caller, false) }
    }

    fn visit_of(&mut self, entry: usize, caller: u32, is_gold: bool) -> Visit {
        let rules = &self.plan.entries[entry];
        let is_estimated = rules
            .iter()
            .any(|rule| matches!(rule.cost, Cost::QuestionResult { estimates: Some(_), .. }));
        // Some are above all bounds, and some are missing.
        let estimate = is_estimated.then(|| self.rng.u64(0..=6)).filter(|estimate| *estimate > 0);
        let month_day = rules
            .iter()
            .any(|rule| rule.has_month_in_data)
            .then(|| self.plan.wide.as_ref().map_or(1, |wide| wide.begins().day().unsigned_abs()));
        Visit { entry, caller, is_gold, estimate, month_day, order: None }
    }

    /// Ticks until the next request.
    fn gap(&mut self) -> Micros {
        let mean = SECOND / self.plan.demand;
        match self.rng.u8(..4) {
            // Bursts, and pauses between them.
            0 => 0,
            1 => mean * 2,
            _ => self.rng.u64(0..=2 * mean),
        }
    }

    /// Hands a request to a worker, after its stall if there is one.
    fn arrive(&mut self, worker: usize, visit: Visit, now: Micros) {
        if self.postpone(worker, now, 0, || Event::Visit { worker, visit: visit.clone() }) {
            return;
        }
        self.begin_draws(Draw::Arrival, self.entries.len() as u64);
        let listener = self.rng.usize(..self.plan.listeners);
        let request = self.enter(worker, visit.clone(), now);
        let stream = self.act(worker, now, |worker| worker.open(listener, &visit));
        self.worker_slots[worker].open.insert(stream, request);
        self.draw_departure(worker, stream, now);
        self.collect(worker, now);
    }

    /// The gateway follows a redirect.
    fn follow(&mut self, worker: usize, stream: u32, request: usize, now: Micros) {
        let visit = self.entries[request].visit.clone();
        let second = self.enter(worker, visit.clone(), now);
        let stream = self.act(worker, now, |worker| worker.follow(stream, &visit));
        self.worker_slots[worker].open.insert(stream, second);
        self.draw_departure(worker, stream, now);
        self.collect(worker, now);
    }

    /// Records a request.
    fn enter(&mut self, worker: usize, visit: Visit, now: Micros) -> usize {
        let worker_slot = &self.worker_slots[worker];
        let gateway_slot = &self.gateway_slots[worker_slot.gateway];
        self.entries.push(Entry {
            visit,
            worker,
            gateway_life: gateway_slot.life,
            worker_life: worker_slot.life,
            clocks: gateway_slot.gateway.clocks(),
            arrived: now,
            decided: None,
            ended: None,
            used: None,
            report: String::new(),
            is_lost: false,
        });
        self.entries.len() - 1
    }

    /// Draws whether the client leaves early.
    fn draw_departure(&mut self, worker: usize, stream: u32, now: Micros) {
        let life = self.worker_slots[worker].life;
        if self.rng.u8(..100) < self.plan.leaving {
            let at = now + self.rng.u64(..300 * MILLISECOND);
            self.add(at, Event::End { worker, life, stream, end: End::Left });
        }
    }

    /// Has the host call a worker, possibly with another one running in the middle.
    fn call<T>(&mut self, worker: usize, now: Micros, act: impl FnOnce(&mut dyn Worker) -> T) -> T {
        let done = self.act(worker, now, act);
        self.collect(worker, now);
        done
    }

    fn act<T>(&mut self, number: usize, now: Micros, act: impl FnOnce(&mut dyn Worker) -> T) -> T {
        let gateway = self.worker_slots[number].gateway;
        self.gateway_slots[gateway].gateway.set_time(now);
        let other = self.workers_of(gateway).start + self.rng.usize(..self.plan.workers);
        let is_interrupted = self.rng.u8(..100) < self.plan.interrupted
            && other != number
            && now < self.plan.ends
            && self.stalled_until(other, now) == now;
        let worker = self.worker_slots[number].worker.clone();
        if !is_interrupted {
            return act(&mut *worker.borrow_mut());
        }
        let (visit, listener) = (self.visit(), self.rng.usize(..self.plan.listeners));
        let accesses = self.rng.u32(..6);
        let opened = Rc::new(Cell::new(None));
        let interrupt = {
            let (opened, visit) = (opened.clone(), visit.clone());
            let other = self.worker_slots[other].worker.clone();
            move || opened.set(Some(other.borrow_mut().open(listener, &visit)))
        };
        self.gateway_slots[gateway].gateway.interrupt_after(accesses, Box::new(interrupt));
        let done = act(&mut *worker.borrow_mut());
        self.gateway_slots[gateway].gateway.take_interruption();
        if let Some(stream) = opened.get() {
            let request = self.enter(other, visit, now);
            self.worker_slots[other].open.insert(stream, request);
            self.draw_departure(other, stream, now);
            self.collect(other, now);
        }
        done
    }

    /// Collects the decisions, calls and timers of a worker after the host has called it.
    fn collect(&mut self, number: usize, now: Micros) {
        let worker = self.worker_slots[number].worker.clone();
        let mut worker = worker.borrow_mut();
        let life = self.worker_slots[number].life;
        self.decide(number, &mut *worker, now);
        for call in worker.calls() {
            let gateway = self.worker_slots[number].gateway;
            if call.cluster == CENTRE {
                let (at, response) = self.network.read_document(&call, now, &mut self.rng);
                self.add(at, Event::Document { worker: number, life, response });
                continue;
            }
            self.worker_slots[number].calls += 1;
            let nth = self.worker_slots[number].calls;
            self.begin_draws(Draw::Call, nth << 16 | number as u64);
            match self.network.send(gateway, call, now, &mut self.rng) {
                Sent::Arrives(at, way) => {
                    self.add(at, Event::Arrival { worker: number, life, way });
                }
                Sent::Fails(at, response) => {
                    self.add(at, Event::Answer { worker: number, life, response });
                }
            }
        }
        if worker.is_alarmed() {
            self.degradations
                .push((self.gateway_slots[self.worker_slots[number].gateway].life, now));
        }
        let due = worker.due();
        if due != self.worker_slots[number].called {
            self.worker_slots[number].called = due;
            if let Some(due) = due {
                self.add(due.max(now), Event::Tick { worker: number, life });
            }
        }
    }

    /// Records the decisions of a worker, and schedules the ends of admitted streams.
    fn decide(&mut self, number: usize, worker: &mut dyn Worker, now: Micros) {
        let open: Vec<(u32, usize)> = self.worker_slots[number]
            .open
            .iter()
            .map(|(stream, request)| (*stream, *request))
            .collect();
        for (stream, request) in open {
            if self.entries[request].decided.is_some() {
                continue;
            }
            let outcome = worker.outcome(stream);
            match outcome {
                StreamOutcome::Held => {}
                StreamOutcome::Refused => {
                    self.entries[request].decided = Some((now, outcome));
                    self.entries[request].ended = Some(now);
                    self.worker_slots[number].open.remove(&stream);
                    self.entries[request].report = worker.end(stream, End::Left);
                }
                StreamOutcome::Admitted => {
                    self.entries[request].decided = Some((now, outcome));
                    self.begin_draws(Draw::End, request as u64);
                    let end = self.ending(request);
                    let takes = self.rng.u64(..=2 * self.plan.service);
                    let takes = if now < self.plan.ends { takes } else { MILLISECOND };
                    let life = self.worker_slots[number].life;
                    self.add(now + takes, Event::End { worker: number, life, stream, end });
                }
            }
        }
    }

    /// Draws the response of an upstream.
    fn ending(&mut self, request: usize) -> End {
        let entry = self.entries[request].visit.entry;
        if let Some(wide) = &self.plan.wide
            && self.rng.u8(..100) < wide.followed
        {
            return End::Followed;
        }
        if self.rng.u8(..20) == 0 {
            return End::Failed;
        }
        let most = self.plan.entries[entry].iter().map(|rule| rule.cost.max()).min().unwrap_or(1);
        End::Served(self.rng.u64(0..=most))
    }

    fn add(&mut self, at: Micros, event: Event) {
        self.number += 1;
        self.order.push(Reverse((at, self.number)));
        self.events.insert(self.number, event);
    }
}
