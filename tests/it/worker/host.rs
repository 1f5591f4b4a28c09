//! A host with roots and streams, and clocks that tests set.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use diana_limiter::Refusal;
use diana_policy::port::{Call, Callout, Environment, Metrics, Request, SharedData};
use diana_policy::time::{Micros, Now};
use diana_worker::AdminReply;
use diana_worker::host::{Clocks, Contexts, Host, Level, Log, Streams};
use kit::fake::{FakeEnvironment, FakeSharedData};
use kit::store::gateway::START;

pub struct House {
    pub now: Cell<Now>,
    /// The delays of clock readings.
    pub slow: RefCell<Vec<Micros>>,
    /// The number of readings of the wall clock.
    pub looks: Cell<u64>,
    pub data: Rc<FakeSharedData>,
    pub random: u128,
    pub environment: FakeEnvironment,
    /// The root of its current call, and the selected context.
    pub caller: Cell<u32>,
    pub entered: Cell<u32>,
    /// The timer's period in milliseconds of each root, and its next expiry.
    pub roots: RefCell<BTreeMap<u32, (u32, Micros)>>,
    pub streams: RefCell<BTreeMap<u32, Rc<dyn Request>>>,
    /// The calls, each with the root that made it.
    pub calls: RefCell<Vec<(u32, Call)>>,
    pub log: RefCell<Vec<(Level, String)>>,
    pub counts: RefCell<BTreeMap<String, i64>>,
    pub resumed: RefCell<Vec<u32>>,
    pub refused: RefCell<Vec<u32>>,
    pub told: RefCell<Vec<String>>,
    pub marks: RefCell<Vec<String>>,
    pub replies: RefCell<Vec<(u32, AdminReply)>>,
    pub taken_off: RefCell<Vec<String>>,
    /// The last refusal.
    pub refusal: RefCell<Option<Refusal>>,
}

impl Default for House {
    fn default() -> House {
        House {
            now: Cell::new(START),
            slow: RefCell::default(),
            looks: Cell::default(),
            data: Rc::default(),
            random: 7 << 64 | 9,
            environment: FakeEnvironment::default(),
            caller: Cell::default(),
            entered: Cell::default(),
            roots: RefCell::default(),
            streams: RefCell::default(),
            calls: RefCell::default(),
            log: RefCell::default(),
            counts: RefCell::default(),
            resumed: RefCell::default(),
            refused: RefCell::default(),
            told: RefCell::default(),
            marks: RefCell::default(),
            replies: RefCell::default(),
            taken_off: RefCell::default(),
            refusal: RefCell::default(),
        }
    }
}

impl House {
    /// Begins a call about a root, or about one of its streams.
    pub fn begin(&self, root: u32, about: u32) {
        self.caller.set(root);
        self.entered.set(about);
    }

    /// Sets both clocks.
    pub fn set(&self, mono: Micros) {
        let now = self.now.get();
        self.now.set(now.later(mono - now.mono));
    }

    /// The next expiry of a timer, and its root.
    pub fn next(&self) -> Option<(Micros, u32)> {
        let roots = self.roots.borrow();
        let on = roots.iter().filter(|(_, (period, _))| *period > 0);
        on.map(|(root, (_, fires))| (*fires, *root)).min()
    }

    /// The timer's period of a root in milliseconds.
    pub fn period(&self, root: u32) -> u32 {
        self.roots.borrow()[&root].0
    }

    /// The timer fires, and its period restarts.
    pub fn fire(&self, root: u32) {
        let (period, fires) = self.roots.borrow()[&root];
        let now = self.now.get().mono;
        let next = (period, if period > 0 { now + Micros::from(period) * 1000 } else { fires });
        self.roots.borrow_mut().insert(root, next);
    }

    pub fn count_of(&self, name: &str) -> i64 {
        self.counts.borrow().get(name).copied().unwrap_or(0)
    }

    /// The log lines since the previous read.
    pub fn lines(&self) -> Vec<String> {
        self.log.take().into_iter().map(|(_, line)| line).collect()
    }
}

impl Callout for House {
    fn send(&self, call: &Call) -> Result<u32, &'static str> {
        let mut calls = self.calls.borrow_mut();
        calls.push((self.caller.get(), call.clone()));
        Ok(calls.len() as u32 - 1)
    }

    fn caller(&self) -> u32 {
        self.caller.get()
    }
}

impl Clocks for House {
    fn monotonic(&self) -> Micros {
        let passed = self.slow.borrow_mut().pop().unwrap_or(0);
        self.now.set(self.now.get().later(passed));
        self.now.get().mono
    }

    fn wall(&self) -> Micros {
        self.looks.set(self.looks.get() + 1);
        self.now.get().wall
    }
}

impl Contexts for House {
    fn enter(&self, context: u32) -> bool {
        let known = self.roots.borrow().contains_key(&context)
            || self.streams.borrow().contains_key(&context);
        self.entered.set(if known { context } else { self.entered.get() });
        known
    }

    fn set_period(&self, milliseconds: u32) {
        let fires = self.now.get().mono + Micros::from(milliseconds) * 1000;
        let mut roots = self.roots.borrow_mut();
        // In a call about a stream, the period is that of its root.
        let entered = self.entered.get();
        let root = if roots.contains_key(&entered) { entered } else { self.caller.get() };
        roots.insert(root, (milliseconds, fires));
    }
}

impl Log for House {
    fn log(&self, level: Level, line: &str) {
        self.log.borrow_mut().push((level, line.into()));
    }
}

impl Metrics for House {
    fn count(&self, name: &str, amount: u64) {
        *self.counts.borrow_mut().entry(name.into()).or_default() += amount as i64;
    }

    fn gauge(&self, name: &str, change: i64) {
        *self.counts.borrow_mut().entry(name.into()).or_default() += change;
    }

    fn set(&self, name: &str, value: u64) {
        self.counts.borrow_mut().insert(name.into(), value as i64);
    }

    fn record(&self, name: &str, value: u64) {
        self.count(name, value);
    }
}

impl Streams for House {
    fn read(&self, _: bool, read: &mut dyn FnMut(&dyn Request)) {
        let request = self.streams.borrow()[&self.entered.get()].clone();
        read(&*request);
    }

    fn mark(&self, header: &str, value: &str) {
        self.marks.borrow_mut().push(format!("{header}: {value}"));
    }

    fn take_off(&self, header: &str) {
        self.taken_off.borrow_mut().push(header.into());
    }

    fn tell(&self, state: &[u8]) {
        let state = str::from_utf8(state).expect("a text");
        self.told.borrow_mut().push(state.into());
    }

    fn refuse(&self, refusal: &Refusal) {
        *self.refusal.borrow_mut() = Some(refusal.clone());
        self.refused.borrow_mut().push(self.entered.get());
    }

    fn reply(&self, reply: &AdminReply) {
        self.replies.borrow_mut().push((self.entered.get(), reply.clone()));
    }

    fn resume(&self, stream: u32) {
        self.resumed.borrow_mut().push(stream);
        self.entered.set(self.caller.get());
    }
}

impl Host for House {
    fn data(&self) -> Rc<dyn SharedData> {
        self.data.clone()
    }

    fn environment(&self) -> &dyn Environment {
        &self.environment
    }

    fn counted(&self, name: &str) -> u64 {
        self.count_of(name) as u64
    }

    fn random(&self) -> u128 {
        self.random
    }
}
