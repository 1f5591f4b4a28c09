//! A worker of a gateway whose requests have an account and a device.

use std::collections::HashMap;
use std::rc::Rc;

use diana_core::port::{self, Call};
use diana_core::time::{Micros, Now, SECOND};
use diana_worker::{Root, Stream};
use kit::ending::FakeEnding;
use kit::fake::{FakeRequest, FakeSharedData};
use kit::host::{FakeHost, Fate};

/// A request: the number of its account, that of its device, and the permits that it takes.
pub type Who = (usize, usize, u64);

/// A request that is decided.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    pub who: Who,
    pub came: Micros,
    pub at: Micros,
    pub admitted: bool,
    /// Whether as many of its caller's requests as may have waited here a moment ago: for a second not all of them do.
    pub is_beyond: bool,
}

/// Requests of a caller that may wait in a worker for what others hold; how long none may do so after there were as many, of
/// which the last may have waited for a fifth of a second.
const MOST: usize = 64;
const CROWDED: Micros = SECOND + SECOND / 5;

pub struct Worker {
    host: FakeHost,
    clocks: Now,
    worker: diana_worker::Worker,
    root: Root,
    streams: u32,
    waiting: HashMap<u32, (Stream, Who, Micros)>,
    /// Accounts (0) and devices (1) of which too many waited, and when they last did.
    crowded: HashMap<(usize, usize), Micros>,
}

impl Worker {
    /// One whose clocks show this when that of the simulation shows zero.
    pub fn new(configuration: &str, data: &Rc<FakeSharedData>, clocks: Now, random: u64) -> Worker {
        let host = FakeHost::new(data.clone(), random.into());
        host.set_clocks(clocks);
        let (worker, mut root) = (diana_worker::Worker::default(), Root::default());
        assert!(root.configure(configuration.as_bytes(), b"gateway", &worker, &host));
        Worker {
            host,
            clocks,
            worker,
            root,
            streams: 0,
            waiting: HashMap::new(),
            crowded: HashMap::new(),
        }
    }

    /// Another configuration comes into force.
    pub fn configure(&mut self, configuration: &str, now: Micros) {
        self.host.set_clocks(self.clocks.later(now));
        assert!(self.root.configure(
            configuration.as_bytes(),
            b"gateway",
            &self.worker,
            &self.host
        ));
    }

    /// A request comes. What became of it, if that is clear at once.
    pub fn request(&mut self, who: Who, now: Micros) -> Option<Done> {
        self.host.set_clocks(self.clocks.later(now));
        self.streams += 1;
        let (account, device, cost) = who;
        let request = FakeRequest::get("/")
            .header("x-account-id", account.to_string())
            .header("x-device-id", device.to_string())
            .header("x-cost", cost.to_string());
        let instance = self.root.instance().cloned().expect("it is configured");
        let mut stream = Stream::new(instance, self.streams);
        let goes_on = stream.request(&request, &self.worker, &self.host);
        let fate = self.host.decided().pop().map_or(Fate::Goes, |decided| decided.fate);
        assert_eq!(goes_on, fate == Fate::Goes);
        if let Fate::Asks(_) = fate {
            self.host.begin(self.streams, Rc::new(request));
            self.waiting.insert(self.streams, (stream, who, now));
            let waits = |is_its: &dyn Fn(&Who) -> bool| {
                self.waiting.values().filter(|(_, who, _)| is_its(who)).count() >= MOST
            };
            let (accounts, devices) = (waits(&|it| it.0 == account), waits(&|it| it.1 == device));
            self.crowded.extend(accounts.then_some(((0, account), now)));
            self.crowded.extend(devices.then_some(((1, device), now)));
            return None;
        }
        Some(self.done(who, now, now, fate))
    }

    /// The client of some request that waits leaves.
    pub fn leave(&mut self, any: usize, now: Micros) {
        self.host.set_clocks(self.clocks.later(now));
        let mut numbers: Vec<u32> = self.waiting.keys().copied().collect();
        numbers.sort_unstable();
        if let Some(number) = numbers.get(any % numbers.len().max(1))
            && let Some((mut stream, ..)) = self.waiting.remove(number)
        {
            stream.end(&FakeEnding::left(None), &self.worker, &self.host);
            self.host.end(*number);
        }
    }

    /// The host calls if it was asked to, and brings answers.
    pub fn work(&mut self, answers: &[(u32, Option<Vec<u8>>)], now: Micros) -> Vec<Done> {
        let local = self.clocks.later(now);
        self.host.set_clocks(local);
        for (token, body) in answers {
            let fetch = || body.clone();
            let status = Some(if body.is_some() { 200 } else { 504 });
            let size = body.as_ref().map_or(0, Vec::len);
            let answer = port::Answer { status, size, body: &fetch };
            self.root.answer(*token, &answer, &self.worker, &self.host);
        }
        if self.host.fires().is_some_and(|at| at <= local.mono) {
            self.host.fire();
            self.root.tick(&self.worker, &self.host);
        }
        let decided = self.host.decided();
        decided.into_iter().filter_map(|it| self.decided(it.stream, it.fate, now)).collect()
    }

    fn decided(&mut self, number: u32, fate: Fate, now: Micros) -> Option<Done> {
        if let Fate::Asks(_) = fate {
            return None;
        }
        let (_, who, came) = self.waiting.remove(&number)?;
        self.host.end(number);
        Some(self.done(who, came, now, fate))
    }

    fn done(&self, who: Who, came: Micros, at: Micros, fate: Fate) -> Done {
        let is_crowded = |what| self.crowded.get(&what).is_some_and(|last| at - last <= CROWDED);
        let is_beyond = is_crowded((0, who.0)) || is_crowded((1, who.1));
        Done { who, came, at, admitted: fate != Fate::Refused, is_beyond }
    }

    /// Calls made since this was last asked.
    pub fn calls(&self) -> Vec<(u32, Call)> {
        self.host.calls()
    }

    /// Requests that wait.
    pub fn waits(&self) -> usize {
        self.waiting.len()
    }
}
