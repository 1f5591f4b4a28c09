//! A worker with `global` rules: the real code in a simulated host.

use std::collections::HashMap;
use std::rc::Rc;

use diana_policy::port::{Answer, Call};
use diana_policy::time::{Micros, Now, SECOND};
use diana_worker::{Instance, Root, Stream};
use kit::fake::{FakeRequest, FakeSharedData};
use kit::host::{FakeHost, StreamOutcome};

/// When a worker is configured. Its clock never goes back.
pub const START: Micros = SECOND;
pub const MILLISECOND: Micros = SECOND / 1000;
const TIMEOUT: Micros = 20 * MILLISECOND;
const ROOT: u32 = 0;

/// A caller's permits per day under the `global` rule, and under the `gateway` rule.
pub const FLEET: usize = 30;
pub const OWN: usize = 40;

/// Maximum wait of a request.
const PATIENCE: Micros = 250 * MILLISECOND + TIMEOUT;

const RULES: &str = "
redis: {cluster: redis, timeout: 20ms}
limits:
  - Url: /
    rules:
      - {actor: account, unit: day, rpu: 30, algo: W, scope: globalBANS}
      - {actor: account, unit: day, rpu: 40, algo: W, scope: gateway}
";

/// The response to a call.
pub struct Response {
    pub status: Option<u16>,
    pub body: Vec<u8>,
}

pub struct Worker {
    host: FakeHost,
    worker: diana_worker::Worker,
    root: Root,
    pub instance: Rc<Instance>,
    streams: u32,
    /// Waiting requests: their callers, and their arrivals.
    waiting: HashMap<u32, (Stream, u8, Micros)>,
    /// Admitted requests of each caller.
    pub admitted: HashMap<u8, usize>,
    pub refused: usize,
}

fn at(now: Micros) -> Now {
    Now { mono: now, wall: 1_700_000_000 * SECOND + now }
}

fn request(caller: u8) -> FakeRequest {
    FakeRequest::get("/").header("x-account-id", [b'a' + caller % 8])
}

impl Worker {
    pub fn new(data: &Rc<FakeSharedData>, bans: &str) -> Worker {
        let rules = RULES.replace("BANS", bans);
        data.set("diana/1/test/seed", &(2_u128 << 64 | 1).to_le_bytes());
        let host = FakeHost { data: data.clone(), random: 7, ..FakeHost::default() };
        host.roots.borrow_mut().insert(ROOT, (0, 0));
        host.take_decided();
        host.now.set(at(START));
        let (worker, mut root) = (diana_worker::Worker::default(), Root::default());
        assert!(root.configure(rules.as_bytes(), b"test", &worker, &host));
        Worker {
            instance: root.instance().cloned().expect("it is configured"),
            host,
            worker,
            root,
            streams: 0,
            waiting: HashMap::new(),
            admitted: HashMap::new(),
            refused: 0,
        }
    }

    pub fn request(&mut self, caller: u8, now: Micros) {
        self.set_clock(now);
        self.streams += 1;
        let request = Rc::new(request(caller));
        let mut stream = Stream::new(self.instance.clone(), self.streams);
        let step = stream.request(&*request, &self.worker, &self.host);
        self.host.take(self.streams, step);
        let outcome =
            self.host.take_decided().pop().map_or(StreamOutcome::Goes, |decided| decided.outcome);
        if matches!(outcome, StreamOutcome::Asks(_)) {
            self.host.streams.borrow_mut().insert(self.streams, request);
        }
        self.done(stream, self.streams, caller, outcome, now);
    }

    /// Does the work that is due, and lets `redis` respond to the calls. `None` is a lost response.
    pub fn step(&mut self, now: Micros, redis: &mut dyn FnMut(&Call) -> Option<Response>) {
        self.set_clock(now);
        if self.host.next().is_some_and(|(fires, _)| fires <= now) {
            self.host.fire(ROOT);
            self.host.take_all(self.root.tick(&self.worker, &self.host));
        }
        for (token, call) in self.host.take_calls() {
            let Some(Response { status, body }) = redis(&call) else { continue };
            let fetch = || Some(body.clone());
            let answer = Answer { status, size: body.len(), body: &fetch, header: &|_| None };
            self.host.take_all(self.root.on_reply(token, &answer, &self.worker, &self.host));
        }
        for decided in self.host.take_decided() {
            let known = self.waiting.remove(&decided.stream);
            let (stream, caller, since) = known.expect("it waits, and is told once");
            self.done(stream, decided.stream, caller, decided.outcome, since);
        }
        for (stream, (_, _, since)) in &self.waiting {
            assert!(now - since <= PATIENCE, "stream {stream} has waited since {since} at {now}");
        }
        // The other rule holds for any replies of Redis.
        assert!(self.admitted.values().all(|count| *count <= OWN), "{:?}", self.admitted);
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn done(
        &mut self,
        stream: Stream,
        number: u32,
        caller: u8,
        outcome: StreamOutcome,
        since: Micros,
    ) {
        match outcome {
            StreamOutcome::Goes | StreamOutcome::Held(_) => {
                *self.admitted.entry(caller % 8).or_default() += 1
            }
            StreamOutcome::Refused => self.refused += 1,
            StreamOutcome::Asks(_) => {
                self.waiting.insert(number, (stream, caller, since));
                return;
            }
        }
        self.host.streams.borrow_mut().remove(&number);
    }

    fn set_clock(&mut self, now: Micros) {
        self.host.drop_rest();
        self.host.now.set(at(now));
    }
}
