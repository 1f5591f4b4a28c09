//! A fake host that tests control. It records the calls of a worker.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use diana_limiter::{Refusal, Resumed, Verdict};
use diana_policy::port::{Call, Callout, Environment, Metrics, Request, SharedData};
use diana_policy::time::{Micros, Now};
use diana_worker::AdminReply;
use diana_worker::host::{Clocks, Contexts, Host, Level, Log, Streams};

use crate::fake::{FakeEnvironment, FakeSharedData};

const MILLISECOND: Micros = 1000;

/// A host with one root.
pub struct FakeHost {
    clocks: Cell<Now>,
    data: Rc<FakeSharedData>,
    random: u128,
    environment: FakeEnvironment,
    /// The timer's period in milliseconds, and its next expiry on the monotonic clock.
    period: Cell<u32>,
    fires: Cell<Option<Micros>>,
    calls: Cell<Vec<(u32, Call)>>,
    made: Cell<u32>,
    requests: RefCell<HashMap<u32, Rc<dyn Request>>>,
    entered: Cell<u32>,
    decided: Cell<Vec<Decided>>,
    /// The error of all calls, if they fail.
    pub no_way: Cell<Option<&'static str>>,
    /// The access log's text for the last refused request.
    refused: Cell<Option<String>>,
    counts: RefCell<HashMap<String, u64>>,
}

/// The decision about a request.
#[derive(Debug)]
pub struct Decided {
    pub stream: u32,
    /// The reply that it waited for, if it did.
    pub resumed: Option<Resumed>,
    pub fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Goes,
    /// It passes at this instant of the monotonic clock.
    Held(Micros),
    Refused,
    /// It waits for a reply under this ticket.
    Asks(u64),
}

/// The host's number of the root. Streams have other numbers.
pub const ROOT: u32 = 0;

impl FakeHost {
    pub fn new(data: Rc<FakeSharedData>, random: u128) -> FakeHost {
        FakeHost {
            clocks: Cell::default(),
            data,
            random,
            environment: FakeEnvironment::default(),
            period: Cell::default(),
            fires: Cell::default(),
            calls: Cell::default(),
            made: Cell::default(),
            requests: RefCell::default(),
            entered: Cell::new(ROOT),
            decided: Cell::default(),
            no_way: Cell::default(),
            refused: Cell::default(),
            counts: RefCell::default(),
        }
    }

    /// The access log's text for the last refused request since the previous call.
    pub fn refused(&self) -> Option<String> {
        self.refused.take()
    }

    /// The value of this counter.
    pub fn counted(&self, name: &str) -> u64 {
        self.counts.borrow().get(name).copied().unwrap_or(0)
    }

    pub fn set_clocks(&self, now: Now) {
        self.clocks.set(now);
    }

    /// The next expiry of the root's timer.
    pub fn fires(&self) -> Option<Micros> {
        self.fires.get()
    }

    /// The timer of the root fires, and its period restarts.
    pub fn fire(&self) {
        self.set_period(self.period.get());
    }

    /// The HTTP calls since the previous call.
    pub fn calls(&self) -> Vec<(u32, Call)> {
        self.calls.take()
    }

    /// A stream begins with a request.
    pub fn begin(&self, stream: u32, request: Rc<dyn Request>) {
        self.requests.borrow_mut().insert(stream, request);
    }

    /// A stream ends.
    pub fn end(&self, stream: u32) {
        self.requests.borrow_mut().remove(&stream);
    }

    /// The decisions since the previous call.
    pub fn decided(&self) -> Vec<Decided> {
        self.decided.take()
    }
}

fn push<T>(list: &Cell<Vec<T>>, one: T) {
    let mut all = list.take();
    all.push(one);
    list.set(all);
}

impl Callout for FakeHost {
    fn send(&self, call: &Call) -> Result<u32, &'static str> {
        if let Some(why) = self.no_way.get() {
            return Err(why);
        }
        let token = self.made.get();
        self.made.set(token + 1);
        push(&self.calls, (token, call.clone()));
        Ok(token)
    }

    fn caller(&self) -> u32 {
        ROOT
    }
}

impl Clocks for FakeHost {
    fn monotonic(&self) -> Micros {
        self.clocks.get().mono
    }

    fn wall(&self) -> Micros {
        self.clocks.get().wall
    }
}

impl Contexts for FakeHost {
    fn enter(&self, context: u32) -> bool {
        self.entered.set(context);
        true
    }

    fn set_period(&self, milliseconds: u32) {
        self.period.set(milliseconds);
        let after = Micros::from(milliseconds) * MILLISECOND;
        self.fires.set((milliseconds > 0).then(|| self.monotonic() + after));
    }
}

impl Log for FakeHost {
    fn log(&self, level: Level, line: &str) {
        assert_ne!(level, Level::Error, "{line}");
    }
}

impl Metrics for FakeHost {
    fn count(&self, name: &str, amount: u64) {
        *self.counts.borrow_mut().entry(name.into()).or_default() += amount;
    }

    fn gauge(&self, _: &str, _: i64) {}

    fn set(&self, _: &str, _: u64) {}

    fn record(&self, _: &str, _: u64) {}
}

impl Streams for FakeHost {
    fn read(&self, _: bool, read: &mut dyn FnMut(&dyn Request)) {
        let request = self.requests.borrow().get(&self.entered.get()).cloned();
        read(&*request.expect("a stream has a request"));
    }

    fn mark(&self, _: &str, _: &str) {}

    fn take_off(&self, _: &str) {}

    fn tell(&self, _: &[u8]) {}

    fn refuse(&self, refusal: &Refusal) {
        self.refused.set(Some(refusal.by.state()));
    }

    fn reply(&self, _: &AdminReply) {}

    fn resume(&self, _: u32) {
        self.entered.set(ROOT);
    }

    fn decided(&self, stream: u32, resumed: Option<&Resumed>, verdict: &Verdict) {
        let fate = match verdict {
            Verdict::Admit(..) => Fate::Goes,
            Verdict::Hold(held) => Fate::Held(held.until),
            Verdict::Refuse(_) => Fate::Refused,
            Verdict::Ask { ticket } => Fate::Asks(*ticket),
        };
        push(&self.decided, Decided { stream, resumed: resumed.cloned(), fate });
    }
}

impl Host for FakeHost {
    fn data(&self) -> Rc<dyn SharedData> {
        self.data.clone()
    }

    fn environment(&self) -> &dyn Environment {
        &self.environment
    }

    fn counted(&self, name: &str) -> u64 {
        self.counts.borrow().get(name).copied().unwrap_or(0)
    }

    fn random(&self) -> u128 {
        self.random
    }
}
