//! The Redis client of a gateway, with a simulated Redis.

mod attempts;
mod batches;
mod breaker;
mod degraded_mode;
mod heartbeats;
mod instants;
mod ledgers;
mod neighbours;
mod probes;
mod record;
mod settlements;
mod shards;
mod split;
mod timeouts;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::redis::admits;
use diana_algorithm::fixed_window;
use diana_policy::Quota;
use diana_policy::key::{Key, Seed};
use diana_policy::port::{Answer, Call, Callout, Destination};
use diana_policy::redis::OnFailure;
use diana_policy::time::{Now, SECOND, Unit};
use diana_redis::client::{Client, Endpoint};
use diana_redis::outbox::{Operation, Outbox};
use diana_redis::protocol::{Charge, Login, Numbers, Question};
use diana_redis::shard::Shards;
use diana_store::backend::Receiver;
use diana_store::replies::QuestionResult;
use kit::fake::{FakeCallout, FakeSharedData};
use kit::rules;

pub const MILLISECOND: u64 = SECOND / 1000;
pub const TIMEOUT: u64 = 20 * MILLISECOND;

/// The secret that a worker proposes.
pub const OWN: Seed = Seed { k0: 3, k1: 4 };

/// A worker's client and its calls, with a clock that the test sets.
pub struct Worker {
    pub client: Client,
    pub outbox: Outbox,
    pub calls: Rc<Calls>,
    /// The caller of the first question about each request.
    asked: Vec<Key>,
}

/// A request or operation that is complete, and the result of its first question.
pub type Completion = (Receiver, QuestionResult);

/// The calls of one worker. They fail while a reason is set.
#[derive(Default)]
pub struct Calls {
    pub fake: FakeCallout,
    /// The number of calls that a test has read.
    seen: Cell<usize>,
}

impl Callout for Calls {
    fn send(&self, call: &Call) -> Result<u32, &'static str> {
        self.fake.send(call)
    }

    fn caller(&self) -> u32 {
        self.fake.caller()
    }
}

impl Calls {
    /// Calls since the previous read, with their tokens.
    pub fn fresh(&self) -> Vec<(u32, Call)> {
        let sent = self.fake.sent.borrow();
        let first = self.seen.replace(sent.len());
        (first as u32..).zip(sent[first..].iter().cloned()).collect()
    }

    /// The only call since the previous read.
    pub fn one(&self) -> (u32, Call) {
        let mut new = self.fresh();
        assert_eq!(new.len(), 1, "{new:?}");
        new.remove(0)
    }

    pub fn none(&self) -> bool {
        self.fresh().is_empty()
    }
}

/// The response to a call.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: Option<u16>,
    pub body: Vec<u8>,
}

pub fn ok(body: Vec<u8>) -> Response {
    Response { status: Some(200), body }
}

pub fn status(status: u16) -> Response {
    Response { status: Some(status), body: b"upstream".into() }
}

pub fn reset() -> Response {
    Response { status: None, body: Vec::new() }
}

impl Worker {
    /// A worker that has had a reply after this time.
    pub fn after(round_trip: u64) -> Worker {
        let mut worker = Worker::of(&Rc::default());
        worker.ask(1, 0);
        worker.work(0);
        let (token, call) = worker.calls.one();
        worker.answer(token, &ok(admits(&call)), round_trip).unwrap();
        worker
    }

    /// Another worker of the gateway with this shared data.
    pub fn of(data: &Rc<FakeSharedData>) -> Worker {
        Worker::with(data, TIMEOUT)
    }

    pub fn with(data: &Rc<FakeSharedData>, timeout: u64) -> Worker {
        Worker::open(data, timeout, Shards::ONE)
    }

    /// A worker whose Redis has shards.
    pub fn with_shards(data: &Rc<FakeSharedData>, shards: Shards) -> Worker {
        Worker::open(data, TIMEOUT, shards)
    }

    /// A worker that proposes another secret.
    pub fn with_secret(data: &Rc<FakeSharedData>, shards: Shards, own: Seed) -> Worker {
        Worker::propose(data, TIMEOUT, shards, own)
    }

    /// A worker of a new gateway with this number of gateways in its configuration.
    pub fn with_gateways(gateways: u64) -> Worker {
        Worker::build(&Rc::default(), Endpoint { gateways, ..endpoint(TIMEOUT, Shards::ONE) }, OWN)
    }

    /// A worker whose Redis is this cluster.
    pub fn at(data: &Rc<FakeSharedData>, cluster: &str) -> Worker {
        let destination = Destination::Cluster(cluster.into());
        Worker::build(data, Endpoint { destination, ..endpoint(TIMEOUT, Shards::ONE) }, OWN)
    }

    fn open(data: &Rc<FakeSharedData>, timeout: u64, shards: Shards) -> Worker {
        Worker::propose(data, timeout, shards, OWN)
    }

    fn propose(data: &Rc<FakeSharedData>, timeout: u64, shards: Shards, own: Seed) -> Worker {
        Worker::build(data, endpoint(timeout, shards), own)
    }

    fn build(data: &Rc<FakeSharedData>, way: Endpoint, own: Seed) -> Worker {
        let shards = way.shards;
        // Unique, in place of a random number. Its heartbeats are due at whole seconds.
        static NUMBER: AtomicU64 = AtomicU64::new(77 * SECOND);
        let number = NUMBER.fetch_add(SECOND, Ordering::Relaxed);
        let client = Client::new(way, "test", data.clone(), own, number);
        let mut outbox = Outbox::new(OnFailure::Gateway, shards);
        outbox.add_rule(charge(0));
        // Most tests are about other calls.
        outbox.beats = false;
        client.update_outbox(&mut outbox);
        Worker { client, outbox, calls: Rc::default(), asked: Vec::new() }
    }

    pub fn work(&mut self, now: u64) -> Vec<Completion> {
        self.client.work(at(now), &*self.calls, &mut self.outbox);
        self.completed()
    }

    pub fn answer(&mut self, token: u32, back: &Response, now: u64) -> Option<Vec<Completion>> {
        let body = || Some(back.body.clone());
        let answer =
            Answer { status: back.status, size: back.body.len(), body: &body, header: &|_| None };
        let is_own = self.client.answer(token, &answer, at(now), &mut self.outbox);
        is_own.then(|| {
            let mut completed = self.completed();
            completed.extend(self.work(now));
            completed
        })
    }

    pub fn on_root_ended(&mut self, root: u32) -> Vec<Completion> {
        self.client.on_root_ended(root, &mut self.outbox);
        self.completed()
    }

    fn completed(&mut self) -> Vec<Completion> {
        let mut completed = Vec::new();
        while let Some((receiver, replies)) = self.outbox.results.next_complete() {
            let caller = match receiver {
                Receiver::Request(id) => self.asked[id as usize - 1],
                Receiver::Store(_, account) => account.key,
                Receiver::Bans(_, caller) => caller,
            };
            let is_own = |(question, _): &&(Question, _)| question.caller() == caller;
            completed.push((receiver, replies.iter().find(is_own).unwrap().1));
        }
        completed
    }

    /// Asks about one caller, and makes the call if possible.
    pub fn ask(&mut self, caller: u64, now: u64) -> u64 {
        self.ask_for(vec![charge(caller)], now)
    }

    /// Asks about this number of rules.
    pub fn ask_for(&mut self, charges: Vec<Charge>, since: u64) -> u64 {
        self.asked.push(charges[0].caller);
        let id = self.asked.len() as u64;
        let questions = charges.into_iter().map(Question::Rule).collect();
        self.client.ask(id, 0, questions, since, &mut self.outbox);
        id
    }

    /// Returns true if every shard is available.
    pub fn is_connected(&self) -> bool {
        self.outbox.unavailable_shards() == 0
    }

    pub fn next(&self, now: u64) -> Option<u64> {
        self.client.next(now, &self.outbox)
    }

    /// Queues an operation.
    pub fn send(&mut self, operation: Operation) {
        self.outbox.add(operation);
    }

    /// Fails the first call of this worker, so that the gateway is in degraded mode.
    pub fn fail(&mut self, now: u64) {
        self.ask(1, now);
        self.work(now);
        self.lose(&status(503), now);
        assert!(!self.is_connected());
    }

    /// Answers the only call, and its second attempt if there is one, by this failure.
    pub fn lose(&mut self, back: &Response, now: u64) -> Vec<Completion> {
        let (token, _) = self.calls.one();
        let mut completions = self.answer(token, back, now).unwrap();
        for (token, _) in self.calls.fresh() {
            completions.extend(self.answer(token, back, now).unwrap());
        }
        completions
    }
}

fn endpoint(timeout: u64, shards: Shards) -> Endpoint {
    Endpoint {
        destination: Destination::Cluster("redis".into()),
        timeout,
        login: Login::default(),
        shards,
        gateways: 1,
    }
}

/// Both clocks, after this number of ticks.
pub fn at(now: u64) -> Now {
    Now { mono: now, wall: 1_700_000_000 * SECOND + now }
}

pub fn charge(caller: u64) -> Charge {
    let quota = Quota::new(Unit::Second, 100);
    let numbers = Numbers::of_rule(&fixed_window::ENTRY, &quota).unwrap();
    rules::charge(5, Key { hash: caller, second_hash: caller }, numbers)
}

/// The tickets among the completions, with the results of their first questions.
pub fn requests(completions: Vec<Completion>) -> Vec<(u64, QuestionResult)> {
    let request = |(receiver, result)| match receiver {
        Receiver::Request(id) => Some((id, result)),
        Receiver::Store(..) | Receiver::Bans(..) => None,
    };
    completions.into_iter().filter_map(request).collect()
}
