//! A worker of a gateway: the real one, on a simulated host.

use std::collections::HashMap;
use std::rc::Rc;

use diana_policy::key::{Key, KeyHasher, Seed};
use diana_policy::port;
use diana_policy::time::{Micros, Now};
use diana_worker::{Instance, Root, Stream};
use kit::fake::{FakeRequest, FakeSharedData};
use kit::host::{FakeHost, StreamOutcome};

use crate::network::Reply;
use crate::world::Plan;

/// The secret that callers are hashed with.
const SEED: Seed = Seed { k0: 1, k1: !1 };

/// The host's number of the only root. Streams have others.
const ROOT: u32 = 0;

/// A request that is decided.
pub struct Done {
    pub caller: u32,
    pub is_admitted: bool,
    /// How long it waited for Redis.
    pub waited: Option<Micros>,
}

pub struct Worker {
    /// The time of its next timer.
    pub wakes: Option<Micros>,
    /// Its clocks at the beginning.
    clocks: Now,
    host: FakeHost,
    worker: diana_worker::Worker,
    root: Root,
    instance: Rc<Instance>,
    is_one_caller: bool,
    streams: u32,
    /// Their callers.
    waiting: HashMap<u32, (u32, Stream)>,
}

impl Worker {
    pub fn new(plan: &Plan, clocks: Now, data: Rc<FakeSharedData>, random: u64) -> Worker {
        let is_one_caller = plan.callers == 1;
        let text = format!(
            "keys: {}\n\
             redis: {{cluster: redis, timeout: {}ms{}}}\n\
             limits: [{{Url: /, rules: [{{actor: {}, unit: {}, rpu: {}, algo: {}, scope: global{}}}]}}]\n",
            // With fewer, callers would share overflow buckets.
            plan.callers.max(50_000),
            plan.timeout / 1000,
            plan.shards.map_or(String::new(), |shards| format!(", proxied: true, parts: {shards}")),
            if is_one_caller { "all" } else { "account" },
            plan.unit.name(),
            plan.rpu,
            plan.algo,
            if plan.asks_after { ", ask: after" } else { "" }
        );
        data.set(
            "diana/1/fleet/seed",
            &(u128::from(SEED.k1) << 64 | u128::from(SEED.k0)).to_le_bytes(),
        );
        let host = FakeHost { data, random: random.into(), ..FakeHost::default() };
        host.roots.borrow_mut().insert(ROOT, (0, 0));
        host.take_decided();
        host.now.set(clocks);
        let (worker, mut root) = (diana_worker::Worker::default(), Root::default());
        assert!(root.configure(text.as_bytes(), b"fleet", &worker, &host));
        let instance = root.instance().cloned().expect("it is configured");
        let waiting = HashMap::new();
        Worker {
            wakes: None,
            clocks,
            host,
            worker,
            root,
            instance,
            is_one_caller,
            streams: 0,
            waiting,
        }
    }

    /// Decides about a request, unless it has to wait.
    pub fn request(&mut self, caller: u32, now: Micros) -> Vec<Done> {
        self.set_clock(now);
        self.streams += 1;
        let request = Rc::new(FakeRequest::get("/").header("x-account-id", account(caller)));
        let mut stream = Stream::new(self.instance.clone(), self.streams);
        let step = stream.request(&*request, &self.worker, &self.host);
        self.host.take(self.streams, step);
        let outcome =
            self.host.take_decided().pop().map_or(StreamOutcome::Goes, |decided| decided.outcome);
        if matches!(outcome, StreamOutcome::Asks(_)) {
            self.host.streams.borrow_mut().insert(self.streams, request);
            self.waiting.insert(self.streams, (caller, stream));
            return Vec::new();
        }
        vec![Done { caller, is_admitted: outcome != StreamOutcome::Refused, waited: None }]
    }

    pub fn tick(&mut self, now: Micros) -> Vec<Done> {
        self.set_clock(now);
        self.host.fire(ROOT);
        self.host.take_all(self.root.tick(&self.worker, &self.host));
        self.resumed()
    }

    pub fn reply(&mut self, reply: &Reply, now: Micros) -> Vec<Done> {
        self.set_clock(now);
        let Reply { token, status, body } = reply;
        let fetch = || Some(body.clone());
        let answer = port::Answer {
            status: Some(*status),
            size: body.len(),
            body: &fetch,
            header: &|_| None,
        };
        self.host.take_all(self.root.on_reply(*token, &answer, &self.worker, &self.host));
        self.resumed()
    }

    fn set_clock(&mut self, now: Micros) {
        self.host.drop_rest();
        self.host.now.set(self.clocks.later(now));
    }

    /// The requests that have waited.
    fn resumed(&mut self) -> Vec<Done> {
        let mut done = Vec::new();
        for decided in self.host.take_decided() {
            if matches!(decided.outcome, StreamOutcome::Asks(_)) {
                continue;
            }
            let Some((caller, _)) = self.waiting.remove(&decided.stream) else { continue };
            self.host.streams.borrow_mut().remove(&decided.stream);
            let since = decided.resumed.map(|resumed| resumed.since);
            let waited =
                since.map(|since| diana_worker::host::Clocks::monotonic(&self.host) - since);
            done.push(Done {
                caller,
                is_admitted: decided.outcome != StreamOutcome::Refused,
                waited,
            });
        }
        done
    }

    /// Calls made since this was last called.
    pub fn calls(&self) -> Vec<(u32, port::Call)> {
        self.host.take_calls()
    }

    /// The time of its timer.
    pub fn fires(&self) -> Option<Micros> {
        self.host.next().map(|(at, _)| at - self.clocks.mono)
    }

    /// Returns true if the gateway counts this caller alone.
    pub fn is_alone(&self, caller: u32) -> bool {
        let mut hasher = KeyHasher::new(&SEED);
        hasher.part(0, account(caller).as_bytes());
        self.instance.is_degraded(if self.is_one_caller { Key::ALL } else { hasher.finish() })
    }
}

/// The value of a caller's header.
fn account(caller: u32) -> String {
    format!("account-{caller}")
}
