//! The law: no request waits longer than it was promised, whatever becomes of roots, listeners and Redis.

use fastrand::Rng;

use super::{MILLISECOND, SECOND, admits, config, host, open};
use crate::fleet::played::{self, Rule, answer};
use host::call_out::{CallOut, Response};
use host::vm::Vm;

/// How long Redis may take by the configuration, and what the host's clock adds: a tick until the trip
/// leaves and one after it is given up, each rounded up and late.
const REDIS: u64 = 20 * MILLISECOND;
const LATE: u64 = 10 * MILLISECOND;

/// How late a held request may be.
const HELD: u64 = 3 * MILLISECOND;

const STEPS: usize = 4_000;

/// A request under way.
struct Waiting {
    stream: u32,
    root: u32,
    path: &'static str,
    since: u64,
}

/// How Redis is just now.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Redis {
    Well,
    Refuses,
    Silent,
    Broken,
}

struct World {
    seed: u64,
    random: Rng,
    host: host::Host,
    vm: Vm,
    /// The roots of two listeners, and those that drain.
    listeners: [u32; 2],
    draining: Vec<u32>,
    waiting: Vec<Waiting>,
    redis: Redis,
    /// By token, when a call is answered and how.
    calls: Vec<(u32, u64, Redis)>,
    changes: usize,
    waited: usize,
}

impl World {
    fn new(seed: u64) -> World {
        println!("seed {seed}");
        let mut host = host(seed);
        let (vm, listeners) = super::two_listeners(&mut host);
        World {
            seed,
            random: Rng::with_seed(seed),
            host,
            vm,
            listeners,
            draining: Vec::new(),
            waiting: Vec::new(),
            redis: Redis::Well,
            calls: Vec::new(),
            changes: 1,
            waited: 0,
        }
    }

    fn now(&self) -> u64 {
        self.host.clock().monotonic()
    }

    fn step(&mut self) {
        match self.random.u32(..100) {
            0..45 => self.send(),
            45..50 => self.leave(),
            50 => self.change(),
            51..54 => self.end_a_root(),
            54..56 => {
                use Redis::{Broken, Refuses, Silent, Well};
                self.redis = [Well, Well, Refuses, Silent, Broken][self.random.usize(..5)];
            }
            56..58 => self.run(SECOND / 2),
            _ => {
                let ticks = self.random.u64(..5 * MILLISECOND);
                self.run(ticks);
            }
        }
    }

    fn send(&mut self) {
        let drains = !self.draining.is_empty() && self.random.u8(..4) == 0;
        let roots = if drains { &self.draining[..] } else { &self.listeners[..] };
        let root = roots[self.random.usize(..roots.len())];
        let path = ["/held", "/far", "/both"][self.random.usize(..3)];
        let caller = format!("caller {}", self.random.u8(..40));
        let (stream, since) = (open(&mut self.vm, root, path, &caller), self.now());
        self.vm.turn_to(self.listeners[0]);
        if self.vm.answer(stream).is_held() {
            self.waited += 1;
            self.waiting.push(Waiting { stream, root, path, since });
        } else {
            self.vm.close(stream).unwrap();
        }
    }

    fn leave(&mut self) {
        if !self.waiting.is_empty() {
            let place = self.random.usize(..self.waiting.len());
            let gone = self.waiting.swap_remove(place);
            self.vm.close(gone.stream).unwrap();
        }
    }

    /// One of the listeners gets other rules, and its root drains.
    fn change(&mut self) {
        self.changes += 1;
        let listener = self.random.usize(..2);
        self.vm.configure(&config(self.changes % 90)).unwrap();
        let old = std::mem::replace(&mut self.listeners[listener], self.vm.in_force());
        self.draining.push(old);
    }

    /// The drain time of a root ends, and with it its requests.
    fn end_a_root(&mut self) {
        if !self.draining.is_empty() {
            let place = self.random.usize(..self.draining.len());
            let root = self.draining.swap_remove(place);
            self.waiting.retain(|waiting| waiting.root != root);
            self.vm.end_root(root).unwrap();
        }
    }

    fn run(&mut self, ticks: u64) {
        let end = self.now() + ticks;
        while self.now() < end {
            let pause = (end - self.now()).min(MILLISECOND / 2);
            self.vm.run(pause);
            self.answer_calls();
            self.look();
        }
    }

    /// Answers the calls whose time has come. What Redis says nothing to, Envoy answers at the timeout.
    fn answer_calls(&mut self) {
        let (now, redis) = (self.now(), self.redis);
        let calls: Vec<CallOut> = self.vm.call_outs().to_vec();
        self.calls.retain(|(token, ..)| calls.iter().any(|call| call.token == *token));
        for call in &calls {
            if !self.calls.iter().any(|(token, ..)| *token == call.token) {
                let latency = self.random.u64(..3 * MILLISECOND);
                let timeout = u64::from(call.timeout) * MILLISECOND;
                let at = if redis == Redis::Silent { timeout } else { latency.min(timeout) };
                self.calls.push((call.token, now + at, redis));
            }
        }
        let due = self.calls.extract_if(.., |(_, at, _)| *at <= now).collect::<Vec<_>>();
        for (token, _, redis) in due {
            let calls = self.vm.call_outs();
            let place = calls.iter().position(|call| call.token == token).unwrap();
            let response = response(redis, &calls[place]);
            self.vm.answer_call_out_at(place, response).unwrap();
        }
    }

    /// Fails if anybody waits longer than promised.
    fn look(&mut self) {
        let now = self.now();
        let mut still = Vec::new();
        for waiting in std::mem::take(&mut self.waiting) {
            let answer = self.vm.answer(waiting.stream);
            if !answer.is_held() {
                self.vm.close(waiting.stream).unwrap();
                continue;
            }
            let far = if waiting.path == "/held" { 0 } else { REDIS + LATE };
            let state = answer.filter_state.get("wasm.diana");
            let held = state.map(|state| wait(&String::from_utf8_lossy(state)) + HELD);
            let promised = far + held.unwrap_or_default();
            let waited = now - waiting.since;
            let Waiting { root, path, .. } = waiting;
            let listeners = self.listeners;
            assert!(
                waited <= promised,
                "seed {}: a request to {path} of root {root} waits {waited} µs instead of {promised}; \
                 listeners {listeners:?}, draining {:?}, Redis {:?}",
                self.seed,
                self.draining,
                self.redis
            );
            still.push(waiting);
        }
        self.waiting = still;
    }
}

fn response(redis: Redis, call: &CallOut) -> Response {
    match redis {
        Redis::Well => admits(played::asks(call)),
        Redis::Refuses => answer(played::asks(call), Rule::refuses(SECOND / 20)),
        Redis::Silent => Response::new(504, ""),
        Redis::Broken => Response::new(200, "220 smtp.example.com\r\n"),
    }
}

/// The microseconds in `wait=0.250000s`.
fn wait(state: &str) -> u64 {
    let seconds = state.split("wait=").nth(1).and_then(|rest| rest.split('s').next());
    let seconds: f64 = seconds.unwrap_or_else(|| panic!("{state}")).parse().unwrap();
    (seconds * SECOND as f64).ceil() as u64
}

#[test]
fn no_request_waits_longer_than_promised() {
    let first = match std::env::var("DIANA_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => Rng::new().u64(..1 << 32),
    };
    for seed in first..first + 4 {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step());
        world.run(2 * SECOND);
        assert!(world.waiting.is_empty());
        assert!(world.waited > STEPS / 20, "too tame: {} waited", world.waited);
        assert!(world.vm.most_at_once() <= 32);
    }
}
