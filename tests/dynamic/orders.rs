//! Every order of what happens to the held requests of two workers: their threads run events, the thread for timers hands work
//! over to them, and clients leave. No request waits beyond its turn.
//!
//! `DIANA_DEPTH` chooses the number of events.

mod data;
mod replies;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::{env, thread};

use diana_native::explored::{self, Module};
use fastrand::Rng;
use kit::choices::{Choices, Tried, try_all};

use crate::callbacks;
use crate::gateway::Gateway;
use crate::stream::{self, Outcome, Stream};
use crate::worker::Queue;

const HOUR: u64 = 3_600_000_000;

/// The time between two turns.
const INTERVAL: u64 = 100_000;

const RULES: &str = "namespace: orders
limits: [{Url: /held, rules: [{name: held, actor: all, unit: second, rpu: 10, algo: LB, scope: gateway}]}]";

/// The most requests of a world, and how often time passes.
const REQUESTS: usize = 4;
const WAITS: usize = 3;

const WORKERS: usize = 2;

#[derive(Debug, Clone, Copy)]
enum Act {
    /// A request arrives at a worker.
    Begin(usize),
    /// The client of an open request leaves.
    Leave(usize),
    /// The thread for timers wakes.
    Fire,
    /// A worker runs its next event.
    Event(usize),
    Wait,
    /// Envoy's main thread replaces the configuration, with the same rule.
    Update,
    /// A worker panics. Its requests wait no longer.
    Fail(usize),
}

struct Request {
    stream: *mut Stream,
    /// The latest time at which it proceeds.
    turn: u64,
}

struct World {
    gateway: &'static Gateway,
    now: u64,
    queues: [Arc<Queue>; WORKERS],
    requests: Vec<Request>,
    is_hasty: bool,
    /// Whether a request that goes on ends the next one of its worker, as on one connection.
    are_joined: bool,
    waits: usize,
    updates: usize,
    failures: usize,
    /// Whether a client has left or a worker has panicked, so that requests may go earlier.
    has_left: bool,
}

#[test]
fn no_held_request_misses_its_turn() {
    tell(RULES, try_orders);
}

#[test]
fn the_thread_for_timers_is_woken() {
    tell(RULES, try_sleeps);
}

/// Requests come before the thread sleeps, at each instant between its steps, and while it sleeps. Returns the number of worlds.
fn try_sleeps(gateway: &'static Gateway) -> u64 {
    let hours = Cell::new(1);
    let Tried { worlds, .. } = try_all(1..=REQUESTS - 1, |requests, choices| {
        hours.set(hours.get() + 1);
        let world = RefCell::new(World::new(gateway, hours.get() * HOUR, 0));
        let mut pick = || (choices.pick(5), choices.pick(WORKERS));
        let arrivals: Vec<_> = (0..requests).map(|_| pick()).collect();
        let begin = |instant: usize| {
            let arrivals = arrivals.iter().filter(|arrival| arrival.0 == instant);
            arrivals.for_each(|(_, worker)| world.borrow_mut().begin(*worker));
        };
        begin(0);
        explored::sleep(&gateway.module, |instant| begin(1 + instant));
        begin(4);
        let (until, due) =
            (explored::sleeps_until(&gateway.module), explored::next_due(&gateway.module));
        assert!(until <= due, "it sleeps until {until}, beyond a timer at {due}");
        world.into_inner().close();
    });
    worlds
}

/// Tries worlds of a gateway with these rules.
fn tell(rules: &str, tries: fn(&'static Gateway) -> u64) {
    let gateway = Gateway::start();
    explored::set_clock(&gateway.module, HOUR);
    gateway.update(rules).expect("the document is valid");
    // No request waits on Envoy's main thread, which is this one.
    let worlds = thread::spawn(move || tries(gateway)).join().expect("the orders of events");
    println!("tried: {worlds} sequences");
    assert_eq!(callbacks::CAUGHT.load(Ordering::SeqCst), 0, "no hook panics");
    gateway.end();
}

fn depth() -> usize {
    env::var("DIANA_DEPTH").map_or(3, |depth| depth.parse().expect("a number"))
}

/// Returns their number.
fn try_orders(gateway: &'static Gateway) -> u64 {
    let hours = Cell::new(1);
    let Tried { worlds, .. } = try_all(1..=2 * depth() + 2, |acts, choices| {
        hours.set(hours.get() + 1);
        // Worlds of more kinds are smaller.
        let kinds = 5 - (acts + 1).saturating_sub(2 * depth()).min(2);
        let mut world = World::new(gateway, hours.get() * HOUR, choices.pick(kinds));
        (0..acts).for_each(|_| world.act(choices));
        world.close();
    });
    worlds
}

impl World {
    /// Everything of earlier worlds is over by then.
    fn new(gateway: &'static Gateway, now: u64, kind: usize) -> World {
        let (queues, requests) = Default::default();
        let (is_hasty, are_joined) = (kind == 1, kind == 2);
        let (waits, updates, failures) = (WAITS, usize::from(kind == 3), usize::from(kind == 4));
        let mut world = World {
            gateway,
            now,
            queues,
            requests,
            is_hasty,
            are_joined,
            waits,
            updates,
            failures,
            has_left: are_joined,
        };
        world.pass(0);
        // Numbers of streams that would begin again do so now, too.
        (0..WORKERS).filter(|_| failures > 0).for_each(|it| explored::fail(world.module(), it));
        while world.is_due() {
            explored::fire(world.module());
        }
        world
    }

    fn module(&self) -> &Module {
        &self.gateway.module
    }

    fn is_due(&self) -> bool {
        explored::next_due(self.module()) <= self.now
    }

    fn pass(&mut self, ticks: u64) {
        self.now += ticks;
        explored::set_clock(self.module(), self.now);
    }

    fn is_open(&self, number: usize) -> bool {
        // SAFETY: it is freed at the end of the world.
        let stream = unsafe { &*self.requests[number].stream };
        stream.outcome == Outcome::Open && !stream.has_ended
    }

    fn act(&mut self, choices: &mut Choices) {
        let mut acts = Vec::new();
        let room = REQUESTS - self.requests.len();
        // At first they are all alike.
        let workers = if room == REQUESTS { 1 } else { WORKERS };
        acts.extend((0..workers).filter(|_| room > 0).map(Act::Begin));
        acts.extend(self.is_due().then_some(Act::Fire));
        acts.extend((0..WORKERS).filter(|worker| self.has_event(*worker)).map(Act::Event));
        acts.extend((self.waits > 0).then_some(Act::Wait));
        acts.extend((self.updates > 0).then_some(Act::Update));
        acts.extend((0..workers).filter(|_| self.failures > 0).map(Act::Fail));
        let open = (0..self.requests.len()).filter(|number| self.is_open(*number));
        acts.extend(open.map(Act::Leave));
        if acts.is_empty() {
            return;
        }
        match acts[choices.pick(acts.len())] {
            Act::Begin(worker) => self.begin(worker),
            Act::Leave(number) => {
                self.has_left = true;
                stream::end(self.requests[number].stream);
            }
            Act::Fail(worker) => {
                (self.failures, self.has_left) = (self.failures - 1, true);
                explored::fail(self.module(), worker);
            }
            Act::Fire => explored::fire(self.module()),
            Act::Event(worker) => self.run_event(worker),
            Act::Wait => {
                self.waits -= 1;
                self.pass(INTERVAL);
            }
            Act::Update => {
                self.updates -= 1;
                let gateway = self.gateway;
                // Another thread than that of the workers.
                let main = thread::spawn(move || {
                    gateway.update(RULES).expect("the document is valid");
                    gateway.run_events();
                    gateway.drain();
                });
                main.join().expect("an update");
            }
        }
        self.check();
    }

    fn has_event(&self, worker: usize) -> bool {
        !self.queues[worker].lock().unwrap().is_empty()
    }

    /// Returns true if a thread has work.
    fn has_work(&self) -> bool {
        self.is_due() || (0..WORKERS).any(|worker| self.has_event(worker))
    }

    fn begin(&mut self, worker: usize) {
        let id = self.requests.len() as u64;
        let queue = self.queues[worker].clone();
        let mut stream =
            Stream::new(self.gateway, id, worker, "/held", queue, &mut Rng::with_seed(1));
        stream.is_hasty = self.is_hasty;
        let stream = Box::into_raw(stream);
        // SAFETY: as in `is_open`.
        let is_beside = |it: &&Request| unsafe { (*it.stream).worker == worker };
        if let Some(before) = self.requests.iter().rev().find(is_beside)
            && self.are_joined
        {
            unsafe { (*before.stream).neighbour = stream };
        }
        let last = self.requests.last().map(|last| last.turn + INTERVAL);
        let turn = last.unwrap_or(0).max(self.now);
        self.requests.push(Request { stream, turn });
        stream::begin(stream);
        // A position of a client that has left may be free again.
        let is_early = turn > self.now && !self.has_left && !self.is_open(id as usize);
        assert!(!is_early, "request {id} is not held");
    }

    /// Envoy drops the events of streams that have ended.
    fn run_event(&mut self, worker: usize) {
        let Some((id, event)) = self.queues[worker].lock().unwrap().pop_front() else { return };
        let Request { stream, .. } = self.requests[id as usize];
        // SAFETY: as in `is_open`.
        if !unsafe { (*stream).has_ended } {
            stream::schedule(stream, event);
        }
    }

    /// When neither thread has work, no request waits beyond its turn.
    fn check(&self) {
        for (number, Request { turn, .. }) in self.requests.iter().enumerate() {
            let is_early = !self.has_left && self.now < *turn && !self.is_open(number);
            assert!(!is_early, "request {number} goes before its turn");
        }
        if self.has_work() {
            return;
        }
        for (number, Request { turn, .. }) in self.requests.iter().enumerate() {
            assert!(!self.is_open(number) || self.now < *turn, "request {number} has no turn");
        }
    }

    /// All threads do their work until each request has been decided.
    fn close(mut self) {
        for _ in 0..=2 * REQUESTS {
            while self.has_work() {
                explored::fire(self.module());
                (0..WORKERS).for_each(|worker| self.run_event(worker));
            }
            self.check();
            self.pass(INTERVAL);
        }
        for number in 0..self.requests.len() {
            assert!(!self.is_open(number), "request {number} waits for ever");
            let Request { stream, .. } = self.requests[number];
            stream::end(stream);
            // SAFETY: no hook of the stream follows.
            drop(unsafe { Box::from_raw(stream) });
        }
    }
}
