//! Gateways of the shipped module, in the interpreter of `tests/host`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use diana_policy::time::{Micros, Now};
use fastrand::Rng;
use host::answer;
use host::call_out::Response;
use host::request::Request;
use host::vm::Vm;

use super::node::{ALARM, Call, End, Gateway, Metrics, StreamOutcome, Visit, Worker, draw, report};
use super::plan::{CENTRE, Plan, TOKEN};

pub struct Shipped {
    host: host::Host,
    clocks: Now,
    now: Cell<Micros>,
    /// Draws the random numbers of workers, if they are those of native ones.
    random: Option<Rng>,
}

impl Shipped {
    /// A gateway with a wall clock that is `hours_ahead` of Redis's.
    pub fn new(plan: &Plan, seed: u64, now: Micros, hours_ahead: u64) -> Shipped {
        let host = host::Host::new(seed);
        host.add_cluster("redis");
        host.add_cluster(CENTRE);
        host.set_environment(TOKEN.0, TOKEN.1);
        let clock = host.clock();
        let (drawn, random) = draw(seed, hours_ahead);
        // The same clocks and random numbers as of the native gateway.
        let random = plan.wide.is_some().then_some(random);
        if random.is_some() {
            clock.set_monotonic(drawn.mono + now);
        }
        let clocks = Now { mono: clock.monotonic() - now, wall: drawn.wall };
        clock.step_wall((drawn.wall + now).cast_signed() - clock.wall().cast_signed());
        Shipped { host, clocks, now: Cell::new(now), random }
    }
}

impl Gateway for Shipped {
    fn clocks(&self) -> Now {
        self.clocks
    }

    fn set_time(&self, now: Micros) {
        self.host.advance(now - self.now.replace(now));
    }

    fn metrics(&self) -> Metrics {
        let value = |name: &String| self.host.counter(name).or(self.host.gauge(name));
        let names = self.host.metrics().into_iter();
        let metrics = names.filter_map(|name| Some((value(&name)?.cast_signed(), name)));
        metrics.filter(|(value, _)| *value != 0).map(|(value, name)| (name, value)).collect()
    }

    fn start(&mut self, documents: &[String]) -> Rc<RefCell<dyn Worker>> {
        if let Some(random) = &mut self.random {
            self.host.fix_random(random.u128(..));
        }
        let (first, more) = documents.split_first().expect("a listener");
        let mut vm = self.host.start_vm(first).unwrap_or_else(|error| panic!("{error}"));
        let mut listeners = vec![vm.in_force()];
        for document in more {
            vm.configure(document).unwrap_or_else(|error| panic!("{error}"));
            listeners.push(vm.in_force());
        }
        Rc::new(RefCell::new(OfVm { vm, listeners, seen: 0, lines: 0, mono: self.clocks.mono }))
    }

    fn interrupt_after(&self, accesses: u32, other: Box<dyn FnOnce()>) {
        self.host.interrupt_after(accesses, other);
    }

    fn take_interruption(&self) -> Option<Box<dyn FnOnce()>> {
        self.host.take_interruption()
    }
}

struct OfVm {
    vm: Vm,
    /// The root of each.
    listeners: Vec<u32>,
    /// Token of the last reported call.
    seen: u32,
    /// Lines of the log that were read.
    lines: usize,
    mono: Micros,
}

/// Envoy's flag of a client that broke off, and of an upstream that could not be connected to.
const CLIENT_LEFT: u64 = 1 << 14;
const UPSTREAM_FAILED: u64 = 1 << 5;

impl OfVm {
    fn open_by(&mut self, root: u32, visit: &Visit) -> u32 {
        self.vm.turn_to(root);
        let mut request = Request::get(visit.path())
            .without(":method")
            .header(":method", visit.method())
            .header("x-account-id", visit.account());
        if visit.is_gold {
            request = request.header("x-plan", "gold");
        }
        if let Some(authorization) = visit.authorization() {
            request = request.header("authorization", authorization);
        }
        for (path, number) in visit.metadata() {
            request = request.property(&path, number);
        }
        self.vm.open(&request).unwrap_or_else(|trap| panic!("{trap}"))
    }
}

impl Worker for OfVm {
    fn open(&mut self, listener: usize, visit: &Visit) -> u32 {
        self.open_by(self.listeners[listener], visit)
    }

    fn follow(&mut self, stream: u32, visit: &Visit) -> u32 {
        let root = self.vm.root_of(stream);
        self.end(stream, End::Followed);
        self.open_by(root, visit)
    }

    fn outcome(&mut self, stream: u32) -> StreamOutcome {
        match self.vm.outcome(stream) {
            answer::StreamOutcome::Held => StreamOutcome::Held,
            answer::StreamOutcome::Admitted => StreamOutcome::Admitted,
            answer::StreamOutcome::Refused => StreamOutcome::Refused,
        }
    }

    fn end(&mut self, stream: u32, end: End) -> String {
        let vm = &mut self.vm;
        let ended = match end {
            _ if vm.outcome(stream) != answer::StreamOutcome::Admitted => vm.close(stream),
            End::Served(used) => {
                let (used, via) = (used.to_string(), "via_upstream");
                let headers: &[(&str, &str)] = &[(":status", "200"), ("x-used", &used)];
                vm.end(stream, Some((headers, via)), (Some(200), via, 0))
            }
            End::Failed => {
                let why = "upstream_reset_before_response_started{connection_failure}";
                let headers: &[(&str, &str)] = &[(":status", "503")];
                vm.end(stream, Some((headers, why)), (Some(503), why, UPSTREAM_FAILED))
            }
            End::Followed => vm.end(stream, None, (Some(302), "internal_redirect", 0)),
            End::Left => {
                let why = "downstream_remote_disconnect";
                vm.end(stream, None, (None, why, CLIENT_LEFT))
            }
        };
        let answer = ended.unwrap_or_else(|trap| panic!("{trap}"));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        let headers = answer.headers.into_iter().map(|(name, value)| (name, text(value)));
        let state = answer.filter_state.get("wasm.diana").cloned().unwrap_or_default();
        report(&headers.collect::<Vec<_>>(), &text(answer.body), &text(state))
    }

    fn due(&mut self) -> Option<Micros> {
        self.vm.next_tick().map(|(due, _)| due - self.mono)
    }

    fn tick(&mut self) {
        if let Some((_, root)) = self.vm.next_tick() {
            self.vm.tick(root).unwrap_or_else(|trap| panic!("{trap}"));
        }
    }

    fn calls(&mut self) -> Vec<Call> {
        let seen = self.seen;
        let new = self.vm.call_outs().iter().filter(|call| call.token > seen);
        let calls: Vec<Call> = new
            .map(|call| {
                let timeout = Micros::from(call.timeout) * 1000;
                let (cluster, body) = (call.cluster.clone(), call.body.clone());
                Call { cluster, token: call.token, body, timeout }
            })
            .collect();
        self.seen = calls.last().map_or(seen, |call| call.token);
        calls
    }

    fn is_alarmed(&mut self) -> bool {
        let new = self.vm.log_from(self.lines);
        self.lines += new.len();
        new.iter().any(|line| line.contains(ALARM))
    }

    fn answer(&mut self, token: u32, status: Option<u16>, body: &[u8]) {
        let place = self.vm.call_outs().iter().position(|call| call.token == token);
        // Envoy drops the answer to a call of a root that has ended.
        let Some(place) = place else { return };
        let mut response = status.map_or_else(Response::reset, |status| Response::new(status, ""));
        response.body = body.to_vec();
        self.vm.answer_call_out_at(place, response).unwrap_or_else(|trap| panic!("{trap}"));
    }

    fn configure(&mut self, listener: usize, document: &str) {
        self.vm.configure(document).unwrap_or_else(|error| panic!("{error}"));
        self.listeners[listener] = self.vm.in_force();
    }

    fn leaks(&mut self) -> Vec<String> {
        let streams = self.vm.streams().into_iter().map(|stream| format!("stream {stream}"));
        // A configuration centre is asked again and again.
        let calls = self.vm.call_outs().iter().filter(|call| call.cluster != CENTRE);
        let calls = calls.map(|call| format!("call {}", call.token));
        streams.chain(calls.collect::<Vec<_>>()).collect()
    }

    fn end_drain(&mut self) -> Vec<u32> {
        let roots = self.vm.roots().into_iter().filter(|root| !self.listeners.contains(root));
        let roots: Vec<u32> = roots.collect();
        let mut ended = self.vm.streams();
        ended.retain(|stream| roots.contains(&self.vm.root_of(*stream)));
        ended.iter().for_each(|stream| drop(self.end(*stream, End::Left)));
        for root in roots {
            self.vm.end_root(root).unwrap_or_else(|trap| panic!("{trap}"));
        }
        ended
    }
}
