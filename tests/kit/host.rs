//! A fake host of roots and streams, with a clock that the test sets. It records the calls of a worker.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use diana_limiter::{LocalReply, Refusal, Verdict, Waiter};
use diana_policy::port::{Call, Callout, Destination, Environment, Metrics, Request, SharedData};
use diana_policy::time::{Micros, Now};
use diana_policy::{Metric, Switches};
use diana_store::process::Process;
use diana_worker::host::{Clocks, Host, Level, Log};
use diana_worker::{Effects, Next, Step, Steps};

use crate::fake::{FakeEnvironment, FakeSharedData};
use crate::store::gateway::START;

/// The host of one worker. Its clocks, data and counts may be those of other workers, too.
pub struct FakeHost {
    pub now: Rc<Cell<Now>>,
    pub data: Rc<FakeSharedData>,
    pub counts: Rc<RefCell<BTreeMap<String, i64>>>,
    pub random: u128,
    pub environment: FakeEnvironment,
    /// Whether it refuses calls.
    pub refuses_calls: Cell<bool>,
    /// The switches of operators.
    pub switches: Cell<Switches>,
    /// The process, if its workers are threads of one.
    pub process: Option<&'static Process>,
    /// How long each of the next readings of the monotonic clock takes, the last one first.
    pub slow: RefCell<Vec<Micros>>,
    /// How often the wall clock was read.
    pub looks: Cell<u64>,
    /// The root that the host is calling about, or about one of its streams.
    pub caller: Cell<u32>,
    /// The period of each root's timer in milliseconds, zero if it is off, and when it fires.
    pub roots: RefCell<BTreeMap<u32, (u32, Micros)>>,
    pub streams: RefCell<BTreeMap<u32, Rc<dyn Request>>>,
    /// All calls, each with the root that made it. The token of a call is its index.
    pub calls: RefCell<Vec<(u32, Call)>>,
    /// The number of calls that `take_calls` has returned.
    pub taken: Cell<usize>,
    pub log: RefCell<Vec<(Level, String)>>,
    pub resumed: RefCell<Vec<u32>>,
    pub refusals: RefCell<Vec<(u32, Refusal)>>,
    /// The responses of the worker, also to refused requests.
    pub replies: RefCell<Vec<(u32, LocalReply)>>,
    /// The filter states of streams.
    pub states: RefCell<BTreeMap<u32, String>>,
    pub marks: RefCell<Vec<String>>,
    pub removed_headers: RefCell<Vec<String>>,
    /// Decisions, recorded from the first [`FakeHost::take_decided`] on.
    pub decided: RefCell<Option<Vec<Decided>>>,
}

/// A decision about a request that is not admitted at once.
#[derive(Debug)]
pub struct Decided {
    pub stream: u32,
    /// The answer that it waited for, if it did.
    pub resumed: Option<Waiter>,
    pub outcome: StreamOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamOutcome {
    Goes,
    /// It goes at this instant of the monotonic clock.
    Held(Micros),
    Refused,
    /// It waits, under a ticket.
    Asks(u64),
}

impl Default for FakeHost {
    fn default() -> FakeHost {
        FakeHost {
            now: Rc::new(Cell::new(START)),
            data: Rc::default(),
            counts: Rc::default(),
            random: 7 << 64 | 9,
            environment: FakeEnvironment::default(),
            refuses_calls: Cell::default(),
            switches: Cell::default(),
            process: None,
            slow: RefCell::default(),
            looks: Cell::default(),
            caller: Cell::default(),
            roots: RefCell::default(),
            streams: RefCell::default(),
            calls: RefCell::default(),
            taken: Cell::default(),
            log: RefCell::default(),
            resumed: RefCell::default(),
            refusals: RefCell::default(),
            replies: RefCell::default(),
            states: RefCell::default(),
            marks: RefCell::default(),
            removed_headers: RefCell::default(),
            decided: RefCell::default(),
        }
    }
}

impl FakeHost {
    /// The host begins to call about a root, or about one of its streams.
    pub fn begin(&self, root: u32) {
        self.caller.set(root);
    }

    /// Takes the step of a stream. Returns true if its request continues.
    pub fn take(&self, stream: u32, step: Step) -> bool {
        let Effects { removed, marks, log } = step.effects.map(|it| *it).unwrap_or_default();
        self.removed_headers.borrow_mut().extend(removed.map(String::from));
        let marks = marks.iter().map(|(header, rules)| format!("{header}: {rules}"));
        self.marks.borrow_mut().extend(marks);
        self.states.borrow_mut().extend(log.map(|log| (stream, log)));
        if let Next::Reply(reply) = &step.next
            && !reply.log.is_empty()
        {
            self.states.borrow_mut().insert(stream, reply.log.clone());
        }
        match step.next {
            Next::Continue => return true,
            Next::Wait => {}
            Next::Reply(reply) => self.replies.borrow_mut().push((stream, *reply)),
        }
        false
    }

    /// Takes steps of waiting requests.
    pub fn take_all(&self, steps: Steps) {
        assert!(steps.len() <= 32, "some hundreds would exhaust the host's stack");
        for (stream, step) in steps {
            if self.take(stream, step) {
                self.resumed.borrow_mut().push(stream);
            }
        }
    }

    /// Sets both clocks.
    pub fn set(&self, mono: Micros) {
        let now = self.now.get();
        self.now.set(now.later(mono - now.mono));
    }

    /// When the next timer fires, and its root.
    pub fn next(&self) -> Option<(Micros, u32)> {
        let roots = self.roots.borrow();
        let on = roots.iter().filter(|(_, (period, _))| *period > 0);
        on.map(|(root, (_, fires))| (*fires, *root)).min()
    }

    /// The period of a root's timer, in milliseconds.
    pub fn period(&self, root: u32) -> u32 {
        self.roots.borrow()[&root].0
    }

    /// The timer of a root fires, and its next period begins.
    pub fn fire(&self, root: u32) {
        if let Some((period, fires)) = self.roots.borrow_mut().get_mut(&root) {
            *fires = self.now.get().mono + Micros::from(*period) * 1000;
        }
    }

    /// Returns the calls since the last `take_calls`, with their tokens.
    pub fn take_calls(&self) -> Vec<(u32, Call)> {
        let mut calls = self.calls.borrow_mut();
        let first = self.taken.replace(calls.len());
        let empty = || Call {
            destination: Destination::Cluster(String::new()),
            headers: Vec::new(),
            body: Vec::new(),
            timeout: 0,
        };
        let fresh = calls[first..].iter_mut().map(|(_, call)| std::mem::replace(call, empty()));
        (first as u32..).zip(fresh).collect()
    }

    /// Returns the decisions since the last call. They are recorded from the first call on.
    pub fn take_decided(&self) -> Vec<Decided> {
        self.decided.replace(Some(Vec::new())).unwrap_or_default()
    }

    /// Drops recorded refusals, replies, resumed streams and log lines.
    ///
    /// # Panics
    /// If an error was logged.
    pub fn drop_rest(&self) {
        let errors = self.log.take().into_iter().filter(|(level, _)| *level == Level::Error);
        assert_eq!(errors.map(|(_, line)| line).collect::<Vec<_>>(), [""; 0]);
        self.refusals.take();
        self.replies.take();
        self.resumed.take();
    }

    pub fn count_of(&self, name: &str) -> i64 {
        self.counts.borrow().get(name).copied().unwrap_or(0)
    }

    /// Returns the lines that were logged since the last call.
    pub fn lines(&self) -> Vec<String> {
        self.log.take().into_iter().map(|(_, line)| line).collect()
    }

    /// The streams of the refused requests.
    pub fn refused(&self) -> Vec<u32> {
        self.refusals.borrow().iter().map(|(stream, _)| *stream).collect()
    }
}

impl Callout for FakeHost {
    fn send(&self, call: &Call) -> Result<u32, &'static str> {
        if self.refuses_calls.get() {
            return Err("no healthy host");
        }
        let mut calls = self.calls.borrow_mut();
        calls.push((self.caller.get(), call.clone()));
        Ok(calls.len() as u32 - 1)
    }

    fn caller(&self) -> u32 {
        self.caller.get()
    }
}

impl Clocks for FakeHost {
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

impl Log for FakeHost {
    fn log(&self, level: Level, line: &str) {
        self.log.borrow_mut().push((level, line.into()));
    }
}

impl Metrics for FakeHost {
    fn add(&self, metric: Metric, labels: &[&str], change: i64) {
        *self.counts.borrow_mut().entry(metric.stat(labels)).or_default() += change;
    }

    fn set(&self, metric: Metric, labels: &[&str], value: u64) {
        self.counts.borrow_mut().insert(metric.stat(labels), value.cast_signed());
    }

    fn record(&self, metric: Metric, labels: &[&str], values: &[u64]) {
        self.add(metric, labels, values.iter().sum::<u64>().cast_signed());
    }
}

impl Host for FakeHost {
    fn data(&self) -> Rc<dyn SharedData> {
        self.data.clone()
    }

    fn process(&self) -> Option<&'static Process> {
        self.process
    }

    fn environment(&self) -> &dyn Environment {
        &self.environment
    }

    fn switches(&self) -> Switches {
        self.switches.get()
    }

    fn set_period(&self, root: u32, milliseconds: u32) -> bool {
        let is_there = self.roots.borrow_mut().get_mut(&root).is_some_and(|(period, _)| {
            *period = milliseconds;
            true
        });
        self.fire(root);
        is_there
    }

    fn request(&self, stream: u32, _: bool, read: &mut dyn FnMut(&dyn Request)) {
        let request = self.streams.borrow().get(&stream).cloned();
        read(&*request.expect("a stream has a request"));
    }

    fn on_decision(&self, stream: u32, resumed: Option<&Waiter>, verdict: &Verdict) {
        if let Verdict::Refuse(refusal) = verdict {
            self.refusals.borrow_mut().push((stream, (**refusal).clone()));
        }
        let Some(decided) = &mut *self.decided.borrow_mut() else { return };
        let outcome = match verdict {
            Verdict::Admit(..) => StreamOutcome::Goes,
            Verdict::Hold(held) => StreamOutcome::Held(held.until),
            Verdict::Refuse(_) => StreamOutcome::Refused,
            Verdict::Pending { id: ticket } => StreamOutcome::Asks(*ticket),
        };
        decided.push(Decided { stream, resumed: resumed.copied(), outcome });
    }

    fn counter(&self, metric: Metric, labels: &[&str]) -> u64 {
        self.count_of(&metric.stat(labels)).cast_unsigned()
    }

    fn random(&self) -> u128 {
        self.random
    }
}
