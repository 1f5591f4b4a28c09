//! A worker: its behaviour in calls of the host, and its own calls of the host.

mod admin;
mod calls;
mod configurations;
mod disabled;
mod entries;
mod explanation;
mod hold;
mod limits;
mod outcomes;
mod redis;
mod remote;
mod replies;
mod requests;
mod retirement;
mod scenarios;
mod share;
mod sources;
mod steps;
mod switches;
mod time;
mod turns;
mod without_document;

use std::collections::BTreeMap;
use std::rc::Rc;

use diana_policy::headers::Headers;
use diana_policy::port::{Answer, Request};
use diana_policy::time::{Micros, SECOND};
use diana_worker::{Root, Stream, Worker};
use kit::ending::FakeEnding;
use kit::fake::FakeRequest;
use kit::host::FakeHost;

pub const MILLISECOND: Micros = SECOND / 1000;

/// A worker in a host.
pub struct Thread {
    pub host: FakeHost,
    pub worker: Worker,
    pub roots: BTreeMap<u32, Root>,
    pub streams: BTreeMap<u32, Stream>,
}

impl Thread {
    pub fn new() -> Thread {
        Thread::of(FakeHost::default())
    }

    pub fn of(host: FakeHost) -> Thread {
        let (worker, roots, streams) = Default::default();
        Thread { host, worker, roots, streams }
    }

    /// A worker with a root that has these rules.
    pub fn with(text: &str) -> Thread {
        let mut thread = Thread::new();
        assert!(thread.configure(1, text), "{:?}", thread.host.lines());
        thread
    }

    /// The host's call about a root.
    fn call<T>(&mut self, root: u32, act: impl FnOnce(&mut Root, &Worker, &FakeHost) -> T) -> T {
        self.host.begin(root);
        act(self.roots.get_mut(&root).unwrap(), &self.worker, &self.host)
    }

    pub fn configure(&mut self, root: u32, text: &str) -> bool {
        self.host.roots.borrow_mut().entry(root).or_default();
        self.roots.entry(root).or_default();
        self.call(root, |it, worker, host| it.configure(text.as_bytes(), b"ns", worker, host))
    }

    /// Sends a request of an account to a root. Returns true if it passes.
    pub fn request(&mut self, root: u32, stream: u32, account: &str) -> bool {
        self.ask(root, stream, FakeRequest::get("/").header("x-account-id", account))
    }

    /// Sends any request. Returns true if it passes.
    pub fn ask(&mut self, root: u32, stream: u32, request: impl Request + 'static) -> bool {
        let request: Rc<dyn Request> = Rc::new(request);
        self.host.streams.borrow_mut().insert(stream, request.clone());
        self.host.begin(root);
        let instance = self.roots[&root].instance().unwrap();
        let (step, new) = Stream::begin(instance, stream, &*request, &self.worker, &self.host);
        let new = new.unwrap_or_else(|| Stream::new(instance.clone(), stream));
        assert_eq!(new.id(), stream, "the host finds it by its number");
        self.streams.insert(stream, new);
        self.host.take(stream, step)
    }

    /// The response of a stream arrives. Returns the headers to add, if there was work left.
    pub fn responds(&mut self, stream: u32) -> Option<Headers> {
        let stream = self.streams.get_mut(&stream).unwrap();
        stream.response(&FakeEnding::answered(200), &self.worker, &self.host)
    }

    /// The client of a stream has left, before or after its response.
    pub fn leave(&mut self, root: u32, stream: u32) {
        self.host.streams.borrow_mut().remove(&stream);
        self.host.begin(root);
        self.streams.remove(&stream).unwrap().end(
            &FakeEnding::left(None),
            &self.worker,
            &self.host,
        );
    }

    pub fn answer(&mut self, root: u32, token: u32, status: Option<u16>, body: &[u8]) {
        self.answer_with(root, token, status, body, None);
    }

    /// The same, from a configuration server that knows the number of gateways.
    pub fn answer_with(
        &mut self,
        root: u32,
        token: u32,
        status: Option<u16>,
        body: &[u8],
        gateways: Option<u64>,
    ) {
        let fetch = || Some(body.to_vec());
        let header = |name: &str| {
            let gateways = gateways.filter(|_| name == "x-diana-gateways")?;
            Some(gateways.to_string().into_bytes())
        };
        let answer = Answer { status, size: body.len(), body: &fetch, header: &header };
        let steps = self.call(root, |it, worker, host| it.on_reply(token, &answer, worker, host));
        self.host.take_all(steps);
    }

    /// A call is lost, and its second attempt, too.
    pub fn lose(&mut self, root: u32, token: u32) {
        self.answer(root, token, Some(503), b"");
        let last = self.host.calls.borrow().len() as u32 - 1;
        if last > token {
            self.answer(root, last, Some(503), b"");
        }
    }

    pub fn end(&mut self, root: u32) {
        self.call(root, |it, worker, host| it.end(worker, host));
        self.roots.remove(&root);
        self.host.roots.borrow_mut().remove(&root);
    }

    /// The host calls a root whose timer has expired.
    pub fn tick(&mut self, root: u32) {
        self.host.fire(root);
        let steps = self.call(root, |it, worker, host| it.tick(worker, host));
        self.host.take_all(steps);
    }

    /// Advances the clock, and lets the host call in time.
    pub fn pass(&mut self, ticks: Micros) {
        let end = self.host.now.get().later(ticks);
        while let Some((fires, root)) = self.host.next().filter(|next| next.0 <= end.mono) {
            self.host.set(fires);
            self.tick(root);
        }
        self.host.set(end.mono);
    }
}
