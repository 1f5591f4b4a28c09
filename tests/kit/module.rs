//! A worker of a gateway: the whole module's code, on a fake host.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use diana_limiter::LocalReply;
use diana_policy::Policy;
use diana_policy::headers::Headers;
use diana_policy::port::Answer;
use diana_policy::time::{Micros, Now};
use diana_worker::{Root, Steps, Stream, Worker};

use crate::ending::FakeEnding;
use crate::fake::{FakeRequest, FakeSharedData};
use crate::host::{Decided, FakeHost};

/// The number of the only root.
const ROOT: u32 = 1;

pub struct Gateway {
    host: FakeHost,
    worker: Worker,
    root: Root,
    /// The latest number of a stream.
    last: u32,
    open: BTreeMap<u32, Stream>,
    /// A hash of all its past events, which alone determine its next acts.
    pub seen: u64,
}

/// A call to Redis.
pub struct Call {
    pub token: u32,
    pub body: Vec<u8>,
    pub timeout: Micros,
}

impl Gateway {
    /// The gateway with this number, on the clock of the world.
    pub fn new(policy: &Policy, now: Rc<Cell<Now>>, number: u64) -> Gateway {
        Gateway::of(policy, now, number, Rc::default())
    }

    /// The same, with this shared data.
    pub fn of(
        policy: &Policy,
        now: Rc<Cell<Now>>,
        number: u64,
        data: Rc<FakeSharedData>,
    ) -> Gateway {
        let random = u128::from(number) << 64 | u128::from(number);
        Gateway::on(FakeHost { now, random, data, ..FakeHost::default() }, policy, number)
    }

    /// The same, on this host.
    pub fn on(host: FakeHost, policy: &Policy, number: u64) -> Gateway {
        host.roots.borrow_mut().insert(ROOT, (0, 0));
        let (worker, root) = (Worker::default(), Root::default());
        let (last, open, seen) = (0, BTreeMap::new(), number);
        let mut gateway = Gateway { host, worker, root, last, open, seen };
        gateway.apply(policy);
        gateway
    }

    /// Another worker of the gateway.
    pub fn beside(&self, policy: &Policy, number: u64) -> Gateway {
        Gateway::of(policy, self.host.now.clone(), number, self.host.data.clone())
    }

    fn apply(&mut self, policy: &Policy) {
        self.host.begin(ROOT);
        let applied = self.root.apply("fleet", b"", policy.clone(), &self.worker, &self.host);
        applied.expect("rules that mean something");
    }

    /// The same configuration applies again, as another one of the host.
    pub fn configure(&mut self, policy: &Policy) {
        self.see("configure");
        self.apply(policy);
    }

    /// Adds an event.
    fn see(&mut self, what: impl Hash) {
        let mut hasher = DefaultHasher::new();
        (self.seen, self.host.now.get().mono, what).hash(&mut hasher);
        if Rc::strong_count(&self.host.data) > 1 {
            // Another worker may have changed it.
            self.host.data.hash_all(&mut hasher);
        }
        self.seen = hasher.finish();
    }

    /// A request of an account comes. Returns the number of its stream.
    pub fn request(&mut self, account: &str) -> u32 {
        self.request_under(account, "")
    }

    /// The same, under a plan.
    pub fn request_under(&mut self, account: &str, plan: &str) -> u32 {
        self.see((account, plan));
        let request = FakeRequest::get("/").header("x-account-id", account);
        self.begin(if plan.is_empty() { request } else { request.header("x-plan", plan) })
    }

    /// A request comes. Returns the number of its stream.
    pub fn begin(&mut self, request: FakeRequest) -> u32 {
        self.last += 1;
        let request = Rc::new(request);
        self.host.streams.borrow_mut().insert(self.last, request.clone());
        let instance = self.root.instance().expect("it is configured");
        let (step, stream) =
            Stream::begin(instance, self.last, &*request, &self.worker, &self.host);
        if self.host.take(self.last, step) {
            self.host.resumed.borrow_mut().push(self.last);
        }
        self.open.extend(stream.map(|stream| (self.last, stream)));
        self.last
    }

    /// The upstream answers the request of a stream, which used these permits. Returns the headers of the module.
    pub fn end(&mut self, stream: u32, used: u64) -> Option<Headers> {
        let fields = self.respond(stream, used);
        self.finish(stream, used);
        fields
    }

    /// The upstream sends the headers of its response.
    pub fn respond(&mut self, stream: u32, used: u64) -> Option<Headers> {
        self.see((stream, used));
        self.open.get_mut(&stream)?.response(&answered(used), &self.worker, &self.host)
    }

    /// A stream ends after its response.
    pub fn finish(&mut self, stream: u32, used: u64) {
        self.host.streams.borrow_mut().remove(&stream);
        if let Some(mut stream) = self.open.remove(&stream) {
            stream.end(&answered(used), &self.worker, &self.host);
        }
    }

    /// The client of a stream leaves before the response.
    pub fn leave(&mut self, stream: u32) {
        self.host.streams.borrow_mut().remove(&stream);
        if let Some(mut stream) = self.open.remove(&stream) {
            stream.end(&FakeEnding::default(), &self.worker, &self.host);
        }
    }

    /// The decisions since the last call, which are recorded from the first one on.
    pub fn take_outcomes(&mut self) -> Vec<Decided> {
        self.host.take_decided()
    }

    /// What the module reports about the request of a stream in the access log.
    pub fn state(&self, stream: u32) -> Option<String> {
        self.host.states.borrow().get(&stream).cloned()
    }

    /// The responses of the module since the last `take_decided` or `take_replies`.
    pub fn take_replies(&mut self) -> Vec<(u32, LocalReply)> {
        self.host.replies.take()
    }

    /// The requests that continue after they have waited.
    pub fn take_resumed(&mut self) -> Vec<u32> {
        self.host.resumed.take()
    }

    /// Whether its host refuses calls from now on.
    pub fn refuse_calls(&mut self, refuses: bool) {
        self.see(refuses);
        self.host.refuses_calls.set(refuses);
    }

    /// When its timer fires.
    pub fn due(&self) -> Option<Micros> {
        self.host.next().map(|(due, _)| due)
    }

    /// Its timer fires.
    pub fn tick(&mut self) {
        self.see("tick");
        self.host.fire(ROOT);
        self.call(|root, worker, host| root.tick(worker, host));
        self.host.fire(ROOT);
    }

    /// The host reports the end of a call.
    pub fn answer(&mut self, token: u32, status: impl Into<Option<u16>>, body: &[u8]) {
        let status = status.into();
        self.see((token, status, body));
        let fetch = || Some(body.to_vec());
        let answer = Answer { status, size: body.len(), body: &fetch, header: &|_| None };
        self.call(|root, worker, host| root.on_reply(token, &answer, worker, host));
    }

    fn call(&mut self, act: impl FnOnce(&mut Root, &Worker, &FakeHost) -> Steps) {
        self.host.begin(ROOT);
        let steps = act(&mut self.root, &self.worker, &self.host);
        self.host.take_all(steps);
    }

    /// The calls since the last `take_calls`.
    pub fn take_calls(&mut self) -> Vec<Call> {
        let calls = self.host.take_calls().into_iter();
        calls.map(|(token, call)| Call { token, body: call.body, timeout: call.timeout }).collect()
    }

    /// The requests that were decided since the last `take_decided`, and whether they pass.
    pub fn take_decided(&mut self) -> Vec<(u32, bool)> {
        self.host.refusals.take();
        let passed = self.host.resumed.take().into_iter().map(|stream| (stream, true));
        let refused = self.host.replies.take().into_iter().map(|(stream, _)| (stream, false));
        passed.chain(refused).collect()
    }
}

/// The response to a request that used these permits.
fn answered(used: u64) -> FakeEnding {
    FakeEnding::answered(200).header(":status", "200").header("x-used", used.to_string())
}
