//! Gateways of native workers: the code of the module, without its adapter and the interpreter.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use diana_policy::port;
use diana_policy::time::{Micros, Now};
use diana_store::process::Process;
use diana_worker::host::Level;
use diana_worker::{Root, Steps, Stream};
use fastrand::Rng;
use kit::ending::FakeEnding;
use kit::fake::{FakeEnvironment, FakeRequest, FakeSharedData};
use kit::host::FakeHost;

use super::node::{self, ALARM, Call, End, Gateway, StreamOutcome, Visit, Worker, draw, report};
use super::plan::{CENTRE, TOKEN};

pub struct Native {
    /// Its clocks when that of the world shows zero.
    clocks: Now,
    random: Rng,
    now: Rc<Cell<Now>>,
    data: Rc<FakeSharedData>,
    metrics: Rc<RefCell<node::Metrics>>,
    /// The process, if its workers are threads of one, as in the native module.
    process: Option<&'static Process>,
}

impl Native {
    /// A gateway like that of the native module: its workers are threads of one process.
    pub fn of_process(seed: u64, now: Micros, hours_ahead: u64) -> Native {
        Native { process: Some(Box::leak(Box::default())), ..Native::new(seed, now, hours_ahead) }
    }

    pub fn new(seed: u64, now: Micros, hours_ahead: u64) -> Native {
        let (clocks, random) = draw(seed, hours_ahead);
        let now = Rc::new(Cell::new(clocks.later(now)));
        let (data, metrics) = (Rc::default(), Rc::default());
        Native { clocks, random, now, data, metrics, process: None }
    }
}

impl Gateway for Native {
    fn clocks(&self) -> Now {
        self.clocks
    }

    fn set_time(&self, now: Micros) {
        self.now.set(self.clocks.later(now));
    }

    fn metrics(&self) -> node::Metrics {
        let mut metrics = self.metrics.borrow().clone();
        // The host of the module keeps no values of a histogram.
        metrics.retain(|name, value| *value != 0 && !name.ends_with(".wait_us"));
        metrics
    }

    fn start(&mut self, documents: &[String]) -> Rc<RefCell<dyn Worker>> {
        let host = FakeHost {
            now: self.now.clone(),
            data: self.data.clone(),
            counts: self.metrics.clone(),
            random: self.random.u128(..),
            environment: FakeEnvironment([(TOKEN.0.into(), TOKEN.1.into())].into()),
            process: self.process,
            ..FakeHost::default()
        };
        let mut worker = ThreadHost {
            host,
            started: self.clocks.mono,
            last: 0,
            worker: diana_worker::Worker::default(),
            roots: BTreeMap::new(),
            listeners: vec![0; documents.len()],
            streams: BTreeMap::new(),
            outcomes: HashMap::new(),
            refusals: HashMap::new(),
            calls: BTreeMap::new(),
        };
        for (listener, document) in documents.iter().enumerate() {
            worker.configure(listener, document);
        }
        Rc::new(RefCell::new(worker))
    }

    fn interrupt_after(&self, accesses: u32, other: Box<dyn FnOnce()>) {
        *self.data.interruption.borrow_mut() = Some((accesses, other));
    }

    fn take_interruption(&self) -> Option<Box<dyn FnOnce()>> {
        self.data.interruption.take().map(|(_, other)| other)
    }
}

struct ThreadHost {
    host: FakeHost,
    /// The monotonic clock when that of the world shows zero.
    started: Micros,
    /// The last number of a root or stream.
    last: u32,
    worker: diana_worker::Worker,
    roots: BTreeMap<u32, Root>,
    /// The root of each.
    listeners: Vec<u32>,
    streams: BTreeMap<u32, OfStream>,
    outcomes: HashMap<u32, StreamOutcome>,
    /// Reports of refusals and replies, by stream.
    refusals: HashMap<u32, String>,
    /// Calls that await an answer, and their clusters.
    calls: BTreeMap<u32, String>,
}

struct OfStream {
    root: u32,
    /// Present while the stream can still settle or wait.
    stream: Option<Stream>,
}

impl ThreadHost {
    fn next(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// The host calls about a root.
    fn of_root(
        &mut self,
        root: u32,
        act: impl FnOnce(&mut Root, &diana_worker::Worker, &FakeHost) -> Steps,
    ) {
        self.host.begin(root);
        if let Some(found) = self.roots.get_mut(&root) {
            self.host.take_all(act(found, &self.worker, &self.host));
        }
    }

    fn open_by(&mut self, root: u32, visit: &Visit) -> u32 {
        let id = self.next();
        let request = Rc::new(request(visit));
        self.host.streams.borrow_mut().insert(id, request.clone());
        self.host.begin(root);
        let instance = self.roots[&root].instance().expect("it is configured").clone();
        let (step, stream) = Stream::begin(&instance, id, &*request, &self.worker, &self.host);
        if self.host.take(id, step) {
            self.outcomes.insert(id, StreamOutcome::Admitted);
        }
        let stream = stream.filter(Stream::is_open);
        self.streams.insert(id, OfStream { root, stream });
        id
    }

    fn end_root(&mut self, id: u32) {
        self.host.begin(id);
        if let Some(mut root) = self.roots.remove(&id) {
            root.end(&self.worker, &self.host);
        }
        self.host.roots.borrow_mut().remove(&id);
        let calls = self.host.calls.borrow();
        self.calls.retain(|token, _| calls[*token as usize].0 != id);
    }

    /// Collects the host's records about streams.
    fn collect(&mut self) {
        for (stream, reply) in self.host.replies.take() {
            let mut headers = vec![(":status".to_owned(), reply.status.to_string())];
            let own = reply.headers.iter();
            headers.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
            if reply.headers.get("content-type").is_none() {
                headers.push(("content-type".into(), "text/plain".into()));
            }
            headers.push(("content-length".into(), reply.body.len().to_string()));
            let body = String::from_utf8_lossy(&reply.body).into_owned();
            let state = self.host.states.borrow_mut().remove(&stream).unwrap_or_default();
            self.refusals.insert(stream, report(&headers, &body, &state));
            self.outcomes.insert(stream, StreamOutcome::Refused);
        }
        self.host.refusals.take();
        for stream in self.host.resumed.take() {
            self.outcomes.entry(stream).or_insert(StreamOutcome::Admitted);
        }
    }
}

impl Worker for ThreadHost {
    fn open(&mut self, listener: usize, visit: &Visit) -> u32 {
        self.open_by(self.listeners[listener], visit)
    }

    fn follow(&mut self, stream: u32, visit: &Visit) -> u32 {
        let root = self.streams[&stream].root;
        self.end(stream, End::Followed);
        self.open_by(root, visit)
    }

    fn outcome(&mut self, stream: u32) -> StreamOutcome {
        self.collect();
        self.outcomes.get(&stream).copied().unwrap_or(StreamOutcome::Held)
    }

    fn end(&mut self, id: u32, end: End) -> String {
        let outcome = self.outcome(id);
        let Some(OfStream { root, stream }) = self.streams.remove(&id) else {
            return String::new();
        };
        self.host.begin(root);
        let ending =
            if outcome == StreamOutcome::Admitted { ending(end) } else { FakeEnding::left(None) };
        let came = !ending.headers.is_empty();
        let text = |(name, value): &(String, Vec<u8>)| {
            (name.clone(), String::from_utf8_lossy(value).into_owned())
        };
        let mut headers: Vec<(String, String)> = ending.headers.iter().map(text).collect();
        if let Some(mut stream) = stream {
            if came {
                let added = stream.response(&ending, &self.worker, &self.host);
                let added = added.unwrap_or_default();
                headers
                    .extend(added.iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
            stream.end(&ending, &self.worker, &self.host);
        }
        self.collect();
        self.outcomes.remove(&id);
        self.host.streams.borrow_mut().remove(&id);
        let state = self.host.states.borrow_mut().remove(&id).unwrap_or_default();
        let refusal = self.refusals.remove(&id);
        refusal.unwrap_or_else(|| report(&headers, "", &state))
    }

    fn due(&mut self) -> Option<Micros> {
        self.host.next().map(|(due, _)| due - self.started)
    }

    fn tick(&mut self) {
        let Some((_, root)) = self.host.next() else { return };
        self.host.fire(root);
        self.of_root(root, |found, worker, host| found.tick(worker, host));
        self.host.fire(root);
    }

    fn calls(&mut self) -> Vec<Call> {
        let fresh = self.host.take_calls().into_iter().map(|(token, call)| {
            let port::Call { destination, body, timeout, .. } = call;
            let cluster = destination.name().to_owned();
            self.calls.insert(token, cluster.clone());
            Call { cluster, token, body, timeout: timeout / 1000 * 1000 }
        });
        fresh.collect()
    }

    fn is_alarmed(&mut self) -> bool {
        let log = self.host.log.take();
        for (_, line) in log.iter().filter(|(level, _)| *level == Level::Error) {
            println!("{line}");
        }
        log.iter().any(|(_, line)| line.contains(ALARM))
    }

    fn answer(&mut self, token: u32, status: Option<u16>, body: &[u8]) {
        if self.calls.remove(&token).is_none() {
            return;
        }
        let root = self.host.calls.borrow()[token as usize].0;
        let fetch = || Some(body.to_vec());
        let answer = port::Answer { status, size: body.len(), body: &fetch, header: &|_| None };
        self.of_root(root, |root, worker, host| root.on_reply(token, &answer, worker, host));
    }

    fn configure(&mut self, listener: usize, document: &str) {
        let id = self.next();
        self.host.roots.borrow_mut().insert(id, (0, 0));
        self.host.begin(id);
        let mut root = Root::default();
        let is_in_force = root.configure(document.as_bytes(), b"sim", &self.worker, &self.host);
        assert!(is_in_force, "refused:\n{document}");
        self.roots.insert(id, root);
        self.listeners[listener] = id;
    }

    fn leaks(&mut self) -> Vec<String> {
        let requests = self.host.streams.borrow();
        let streams = self.streams.keys().chain(requests.keys());
        // A configuration centre is asked again and again.
        let calls = self.calls.iter().filter(|(_, cluster)| *cluster != CENTRE);
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
fn request(visit: &Visit) -> FakeRequest {
    let mut request = FakeRequest::get(&visit.path()).header("x-account-id", visit.account());
    request.method = Some(visit.method().into());
    if visit.is_gold {
        request = request.header("x-plan", "gold");
    }
    if let Some(authorization) = visit.authorization() {
        request = request.header("authorization", authorization);
    }
    for (path, number) in visit.metadata() {
        request = request.property(&path, number);
    }
    request.from("192.0.2.1:1")
}

/// How a stream ends, with the headers of the response that the filter sees.
fn ending(end: End) -> FakeEnding {
    match end {
        End::Served(used) => {
            FakeEnding::answered(200).header(":status", "200").header("x-used", used.to_string())
        }
        End::Failed => FakeEnding::unreachable().header(":status", "503"),
        End::Left => FakeEnding::left(None),
        End::Followed => FakeEnding::denied(302, "internal_redirect"),
    }
}
