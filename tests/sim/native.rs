//! Gateways of native workers: the code of the module, without its adapter and the interpreter.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::rc::Rc;

use diana_limiter::{Protocol, Refusal};
use diana_policy::port::{
    self, Callout, Ending, Environment, Metrics, Property, Pseudo, Request, SharedData, Values,
};
use diana_policy::time::{Micros, Now};
use diana_worker::host::{Clocks, Contexts, Host, Level, Log, Streams};
use diana_worker::{AdminReply, Root, Stream};
use fastrand::Rng;
use kit::fake::{FakeEnvironment, FakeSharedData};

use super::node::{self, ALARM, Call, End, Fate, Gateway, Visit, Worker, draw, report};
use super::plan::{CENTRE, TOKEN};

/// Runs another worker in the middle of a call, after this number of accesses to shared data.
type Interruption = (u32, Box<dyn FnOnce()>);

pub struct Native {
    shared: Rc<Shared>,
    random: Rng,
}

/// Shared by the workers of a gateway.
struct Shared {
    clocks: Now,
    now: Cell<Micros>,
    data: FakeSharedData,
    metrics: RefCell<node::Metrics>,
    interruption: RefCell<Option<Interruption>>,
}

impl Native {
    pub fn new(seed: u64, now: Micros, hours_ahead: u64) -> Native {
        let (clocks, random) = draw(seed, hours_ahead);
        let shared = Shared {
            clocks,
            now: Cell::new(now),
            data: FakeSharedData::default(),
            metrics: RefCell::default(),
            interruption: RefCell::default(),
        };
        Native { shared: Rc::new(shared), random }
    }
}

impl Gateway for Native {
    fn clocks(&self) -> Now {
        self.shared.clocks
    }

    fn set_time(&self, now: Micros) {
        self.shared.now.set(now);
    }

    fn metrics(&self) -> node::Metrics {
        let mut metrics = self.shared.metrics.borrow().clone();
        metrics.retain(|_, value| *value != 0);
        metrics
    }

    fn start(&mut self, documents: &[String]) -> Rc<RefCell<dyn Worker>> {
        let mut worker = OfThread {
            host: NativeHost::new(self.shared.clone(), self.random.u128(..)),
            worker: diana_worker::Worker::default(),
            roots: BTreeMap::new(),
            listeners: vec![0; documents.len()],
            streams: BTreeMap::new(),
        };
        for (listener, document) in documents.iter().enumerate() {
            worker.configure(listener, document);
        }
        Rc::new(RefCell::new(worker))
    }

    fn interrupt_after(&self, accesses: u32, other: Box<dyn FnOnce()>) {
        *self.shared.interruption.borrow_mut() = Some((accesses, other));
    }

    fn take_interruption(&self) -> Option<Box<dyn FnOnce()>> {
        self.shared.interruption.take().map(|(_, other)| other)
    }
}

impl SharedData for Shared {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        self.interrupt();
        self.data.get(key)
    }

    fn swap(&self, key: &str, value: &[u8], number: Option<u32>) -> bool {
        self.interrupt();
        self.data.swap(key, value, number)
    }
}

impl Shared {
    fn interrupt(&self) {
        let waiting = self.interruption.take();
        match waiting {
            Some((0, run)) => run(),
            Some((more, run)) => *self.interruption.borrow_mut() = Some((more - 1, run)),
            None => {}
        }
    }
}

struct OfThread {
    host: NativeHost,
    worker: diana_worker::Worker,
    roots: BTreeMap<u32, Root>,
    /// The root of each.
    listeners: Vec<u32>,
    streams: BTreeMap<u32, OfStream>,
}

struct OfStream {
    root: u32,
    /// Present while the stream can still settle or wait.
    stream: Option<Stream>,
}

impl OfThread {
    /// The host calls about a root.
    fn of_root(
        &mut self,
        root: u32,
        act: impl FnOnce(&mut Root, &diana_worker::Worker, &NativeHost),
    ) {
        self.host.call_about(root, root);
        if let Some(found) = self.roots.get_mut(&root) {
            act(found, &self.worker, &self.host);
        }
    }

    fn open_by(&mut self, root: u32, visit: &Visit) -> u32 {
        let id = self.host.next();
        let request = Rc::new(Asked::of(visit));
        self.host.requests.borrow_mut().insert(id, request.clone());
        self.host.call_about(root, id);
        let instance = self.roots[&root].instance().expect("it is configured").clone();
        let (goes_on, stream) = Stream::begin(&instance, id, &*request, &self.worker, &self.host);
        if goes_on {
            self.host.fates.borrow_mut().insert(id, Fate::Admitted);
        }
        let stream = stream.filter(Stream::is_open);
        self.streams.insert(id, OfStream { root, stream });
        id
    }

    fn end_root(&mut self, id: u32) {
        self.host.call_about(id, id);
        if let Some(mut root) = self.roots.remove(&id) {
            root.end(&self.worker, &self.host);
        }
        self.host.roots.borrow_mut().remove(&id);
        self.host.calls.borrow_mut().retain(|_, call| call.root != id);
    }
}

impl Worker for OfThread {
    fn open(&mut self, listener: usize, visit: &Visit) -> u32 {
        self.open_by(self.listeners[listener], visit)
    }

    fn follow(&mut self, stream: u32, visit: &Visit) -> u32 {
        let root = self.streams[&stream].root;
        self.end(stream, End::Followed);
        self.open_by(root, visit)
    }

    fn fate(&mut self, stream: u32) -> Fate {
        self.host.fates.borrow().get(&stream).copied().unwrap_or(Fate::Held)
    }

    fn end(&mut self, id: u32, end: End) -> String {
        let fate = self.fate(id);
        let Some(OfStream { root, stream }) = self.streams.remove(&id) else {
            return String::new();
        };
        self.host.call_about(root, id);
        let end = if fate == Fate::Admitted { end } else { End::Left };
        let headers = response(end);
        let ending = EndingOf { host: &self.host, stream: id, end, headers };
        let mut headers = ending.headers.clone();
        if let Some(mut stream) = stream {
            if !ending.headers.is_empty() {
                let added = stream.response(&ending, &self.worker, &self.host);
                let added = added.unwrap_or_default().into_iter();
                headers.extend(added.map(|(name, value)| (name.into_owned(), value)));
            }
            self.host.call_about(root, id);
            stream.end(&ending, &self.worker, &self.host);
        }
        self.host.fates.borrow_mut().remove(&id);
        self.host.requests.borrow_mut().remove(&id);
        let state = self.host.states.borrow_mut().remove(&id).unwrap_or_default();
        let refusal = self.host.refusals.borrow_mut().remove(&id);
        refusal.unwrap_or_else(|| report(&headers, "", &state))
    }

    fn due(&mut self) -> Option<Micros> {
        let mono = self.host.shared.clocks.mono;
        self.host.next_timer().map(|(due, _)| due - mono)
    }

    fn tick(&mut self) {
        let Some((_, root)) = self.host.next_timer() else { return };
        self.host.begin_period(root);
        self.of_root(root, |found, worker, host| found.tick(worker, host));
        self.host.begin_period(root);
    }

    fn calls(&mut self) -> Vec<Call> {
        self.host.made.take()
    }

    fn is_alarmed(&mut self) -> bool {
        self.host.is_alarmed.take()
    }

    fn answer(&mut self, token: u32, status: Option<u16>, body: &[u8]) {
        let Some(call) = self.host.calls.borrow_mut().remove(&token) else { return };
        let fetch = || Some(body.to_vec());
        let answer = port::Answer { status, size: body.len(), body: &fetch };
        self.of_root(call.root, |root, worker, host| root.answer(token, &answer, worker, host));
    }

    fn configure(&mut self, listener: usize, document: &str) {
        let id = self.host.next();
        self.host.roots.borrow_mut().insert(id, Timer::default());
        self.host.call_about(id, id);
        let mut root = Root::default();
        let is_in_force = root.configure(document.as_bytes(), b"sim", &self.worker, &self.host);
        assert!(is_in_force, "refused:\n{document}");
        self.roots.insert(id, root);
        self.listeners[listener] = id;
    }

    fn leaks(&mut self) -> Vec<String> {
        let requests = self.host.requests.borrow();
        let streams = self.streams.keys().chain(requests.keys());
        let calls = self.host.calls.borrow();
        // A configuration centre is asked again and again.
        let calls = calls.iter().filter(|(_, call)| call.cluster != CENTRE);
        let calls = calls.map(|(token, _)| format!("call {token}"));
        streams.map(|stream| format!("stream {stream}")).chain(calls).collect()
    }

    fn end_drain(&mut self) -> Vec<u32> {
        let listeners = self.listeners.clone();
        let over: Vec<u32> =
            self.roots.keys().copied().filter(|root| !listeners.contains(root)).collect();
        let of_old = self.streams.iter().filter(|(_, stream)| over.contains(&stream.root));
        let ended: Vec<u32> = of_old.map(|(id, _)| *id).collect();
        ended.iter().for_each(|stream| drop(self.end(*stream, End::Left)));
        over.into_iter().for_each(|root| self.end_root(root));
        ended
    }
}

/// A request, as the core reads it.
struct Asked {
    path: String,
    account: String,
    method: &'static str,
    authorization: Option<String>,
    is_gold: bool,
}

impl Asked {
    fn of(visit: &Visit) -> Asked {
        Asked {
            path: visit.path(),
            account: visit.account(),
            method: visit.method(),
            authorization: visit.authorization(),
            is_gold: visit.is_gold,
        }
    }
}

impl Request for Asked {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        Some(Cow::Borrowed(match which {
            Pseudo::Path => self.path.as_bytes(),
            Pseudo::Method => self.method.as_bytes(),
            Pseudo::Authority => b"example.com",
        }))
    }

    fn header(&self, name: &str) -> Values<'_> {
        match name {
            "x-account-id" => Values::One(self.account.as_bytes()),
            "x-plan" if self.is_gold => Values::One(b"gold"),
            "authorization" => {
                let value = self.authorization.as_ref();
                value.map_or(Values::None, |value| Values::One(value.as_bytes()))
            }
            _ => Values::None,
        }
    }

    fn client(&self) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, 1]))
    }

    fn property(&self, _: &Property) -> Option<Cow<'_, [u8]>> {
        None
    }
}

/// How a stream ended, as the core reads it while the host is calling about that stream.
struct EndingOf<'h> {
    host: &'h NativeHost,
    stream: u32,
    end: End,
    headers: Vec<(String, String)>,
}

impl EndingOf<'_> {
    /// The end of the stream, unless another context was entered.
    fn end(&self) -> Option<End> {
        (self.host.entered.get() == self.stream).then_some(self.end)
    }
}

/// Headers of the response that the filter sees.
fn response(end: End) -> Vec<(String, String)> {
    let header = |name: &str, value: String| (name.to_owned(), value);
    match end {
        End::Served(used) => {
            vec![header(":status", "200".into()), header("x-used", used.to_string())]
        }
        End::Failed => vec![header(":status", "503".into())],
        End::Left | End::Followed => Vec::new(),
    }
}

impl Ending for EndingOf<'_> {
    fn header(&self, name: &str) -> Values<'_> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map_or(Values::None, |(_, value)| Values::One(value.as_bytes()))
    }

    fn status(&self) -> Option<u16> {
        match self.end()? {
            End::Served(_) => Some(200),
            End::Failed => Some(503),
            End::Left => None,
            End::Followed => Some(302),
        }
    }

    fn is_from_upstream(&self) -> bool {
        matches!(self.end(), Some(End::Served(_)))
    }

    fn is_followed(&self) -> bool {
        self.end() == Some(End::Followed)
    }

    fn details(&self) -> Option<Cow<'_, [u8]>> {
        Some(Cow::Borrowed(match self.end()? {
            End::Served(_) => b"via_upstream",
            End::Failed => b"upstream_reset_before_response_started{connection_failure}",
            End::Left => b"downstream_remote_disconnect",
            End::Followed => b"internal_redirect",
        }))
    }

    fn upstream_failed(&self) -> bool {
        self.end() == Some(End::Failed)
    }

    fn client_left(&self) -> bool {
        self.end() == Some(End::Left)
    }

    fn property(&self, _: &Property) -> Option<Cow<'_, [u8]>> {
        None
    }
}

/// A root's timer, by the monotonic clock of the host.
#[derive(Debug, Default, Clone, Copy)]
struct Timer {
    /// Milliseconds; zero is off.
    period: u32,
    fires: Micros,
}

struct NativeHost {
    shared: Rc<Shared>,
    environment: FakeEnvironment,
    random: u128,
    last: Cell<u32>,
    roots: RefCell<BTreeMap<u32, Timer>>,
    /// The root and the context that the host is calling about; the latter changes when another one is entered.
    caller: Cell<u32>,
    entered: Cell<u32>,
    requests: RefCell<HashMap<u32, Rc<Asked>>>,
    fates: RefCell<HashMap<u32, Fate>>,
    /// Filter states, and reports of refusals, by stream.
    states: RefCell<HashMap<u32, String>>,
    refusals: RefCell<HashMap<u32, String>>,
    /// Calls not yet reported to the world, and calls that await an answer.
    made: RefCell<Vec<Call>>,
    calls: RefCell<BTreeMap<u32, Open>>,
    is_alarmed: Cell<bool>,
}

/// A call that awaits an answer.
struct Open {
    root: u32,
    cluster: String,
}

impl NativeHost {
    fn new(shared: Rc<Shared>, random: u128) -> NativeHost {
        NativeHost {
            shared,
            environment: FakeEnvironment([(TOKEN.0.into(), TOKEN.1.into())].into()),
            random,
            last: Cell::new(0),
            roots: RefCell::default(),
            caller: Cell::new(0),
            entered: Cell::new(0),
            requests: RefCell::default(),
            fates: RefCell::default(),
            states: RefCell::default(),
            refusals: RefCell::default(),
            made: RefCell::default(),
            calls: RefCell::default(),
            is_alarmed: Cell::new(false),
        }
    }

    fn next(&self) -> u32 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    fn call_about(&self, root: u32, context: u32) {
        self.caller.set(root);
        self.entered.set(context);
    }

    /// The next timer: when it fires, and its root.
    fn next_timer(&self) -> Option<(Micros, u32)> {
        let roots = self.roots.borrow();
        let running = roots.iter().filter(|(_, timer)| timer.period > 0);
        running.map(|(id, timer)| (timer.fires, *id)).min()
    }

    fn begin_period(&self, root: u32) {
        let now = self.monotonic();
        if let Some(timer) = self.roots.borrow_mut().get_mut(&root) {
            timer.fires = now + Micros::from(timer.period) * 1000;
        }
    }
}

impl Callout for NativeHost {
    fn send(&self, call: &port::Call) -> Result<u32, &'static str> {
        let token = self.next();
        let timeout = call.timeout / 1000 * 1000;
        let (cluster, body) = (call.cluster.clone(), call.body.clone());
        self.made.borrow_mut().push(Call { cluster: cluster.clone(), token, body, timeout });
        self.calls.borrow_mut().insert(token, Open { root: self.caller.get(), cluster });
        Ok(token)
    }

    fn caller(&self) -> u32 {
        self.caller.get()
    }
}

impl Clocks for NativeHost {
    fn monotonic(&self) -> Micros {
        self.shared.clocks.mono + self.shared.now.get()
    }

    fn wall(&self) -> Micros {
        self.shared.clocks.wall + self.shared.now.get()
    }
}

impl Contexts for NativeHost {
    fn enter(&self, context: u32) -> bool {
        let is_there = self.roots.borrow().contains_key(&context)
            || self.requests.borrow().contains_key(&context);
        if is_there {
            self.entered.set(context);
        }
        is_there
    }

    fn set_period(&self, milliseconds: u32) {
        let entered = self.entered.get();
        let is_root = self.roots.borrow().contains_key(&entered);
        let root = if is_root { entered } else { self.caller.get() };
        if let Some(timer) = self.roots.borrow_mut().get_mut(&root) {
            timer.period = milliseconds;
        }
        self.begin_period(root);
    }
}

impl Log for NativeHost {
    fn log(&self, level: Level, line: &str) {
        if level == Level::Error {
            println!("{line}");
        }
        if line.contains(ALARM) {
            self.is_alarmed.set(true);
        }
    }
}

impl Metrics for NativeHost {
    fn count(&self, name: &str, amount: u64) {
        self.gauge(name, amount.cast_signed());
    }

    fn gauge(&self, name: &str, change: i64) {
        *self.shared.metrics.borrow_mut().entry(name.into()).or_default() += change;
    }

    fn set(&self, name: &str, value: u64) {
        self.shared.metrics.borrow_mut().insert(name.into(), value.cast_signed());
    }

    fn record(&self, _: &str, _: u64) {}
}

impl Streams for NativeHost {
    fn read(&self, _: bool, read: &mut dyn FnMut(&dyn Request)) {
        let request = self.requests.borrow().get(&self.entered.get()).cloned();
        read(&*request.expect("a stream has a request"));
    }

    fn mark(&self, _: &str, _: &str) {}

    fn take_off(&self, _: &str) {}

    fn tell(&self, state: &[u8]) {
        let state = String::from_utf8_lossy(state).into_owned();
        self.states.borrow_mut().insert(self.entered.get(), state);
    }

    fn refuse(&self, refusal: &Refusal) {
        let stream = self.entered.get();
        let reply = refusal.reply(Protocol::Http, b"");
        let mut headers = vec![(":status".to_owned(), reply.status.to_string())];
        let own = refusal.headers().into_iter();
        headers.extend(own.map(|(name, value)| (name.to_owned(), value)));
        headers.push(("content-type".into(), reply.content_type.into()));
        headers.push(("content-length".into(), reply.body.len().to_string()));
        let body = String::from_utf8_lossy(&reply.body).into_owned();
        let report = report(&headers, &body, &refusal.by.state());
        self.refusals.borrow_mut().insert(stream, report);
        self.fates.borrow_mut().insert(stream, Fate::Refused);
    }

    fn reply(&self, reply: &AdminReply) {
        let stream = self.entered.get();
        let mut headers = vec![(":status".to_owned(), reply.status.to_string())];
        headers.extend(reply.headers().map(|(name, value)| (name.into(), value.into())));
        headers.push(("content-length".into(), reply.body.len().to_string()));
        self.refusals.borrow_mut().insert(stream, report(&headers, &reply.body, ""));
        self.fates.borrow_mut().insert(stream, Fate::Refused);
    }

    fn resume(&self, stream: u32) {
        self.fates.borrow_mut().entry(stream).or_insert(Fate::Admitted);
        self.entered.set(self.caller.get());
    }
}

impl Host for NativeHost {
    fn data(&self) -> Rc<dyn SharedData> {
        self.shared.clone()
    }

    fn environment(&self) -> &dyn Environment {
        &self.environment
    }

    fn counted(&self, name: &str) -> u64 {
        self.shared.metrics.borrow().get(name).map_or(0, |count| count.cast_unsigned())
    }

    fn random(&self) -> u128 {
        self.random
    }
}
