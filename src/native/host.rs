//! The capabilities of the host during one of its calls.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use diana_policy::port::{Call, Callout, Destination, Environment, Metrics, Request, SharedData};
use diana_policy::time::{Micros, SECOND};
use diana_policy::{Metric, ModuleKind, Switches};
use diana_store::process::Process;
use diana_worker::host::{Clocks, Host, Level, Log};
use diana_worker::{Next, Step, Steps};

use crate::abi::{self, HeaderMemory, LogLevel, Scheduler, StreamCall, StreamPointer};
use crate::calls::{CallId, CallReply};
use crate::clock;
use crate::configurations::FIRST_ROOT;
use crate::module::Module;
use crate::request::HostRequest;
use crate::response;

const MILLISECOND: Micros = SECOND / 1000;

/// The event of a waiting stream that runs the timers of its worker.
pub(crate) const TICK: u64 = 0;

/// The event of a waiting stream after its worker has failed.
pub(crate) const PASS: u64 = 1;

/// The state of a worker's host between two calls.
pub(crate) struct HostState {
    /// The number of the worker's cell.
    pub(crate) cell: usize,
    pub(crate) module: &'static Module,
    /// The number of the latest call.
    token: Cell<u32>,
    /// The number of the latest stream.
    stream: Cell<u32>,
    timers: RefCell<Vec<RootTimer>>,
    /// Whether a timer has changed since it was last looked at.
    pub(crate) timers_changed: Cell<bool>,
    /// The waiting stream on whose thread due timers run.
    handed_over: Cell<Option<u32>>,
    waiting: RefCell<BTreeMap<u32, WaitingStream>>,
    actions: RefCell<VecDeque<Action>>,
    /// Replies that the worker has not processed.
    replies: RefCell<Vec<(CallId, CallReply)>>,
    /// Memory for the headers of a request.
    pub(crate) headers: Cell<HeaderMemory>,
}

/// The timer of a root.
struct RootTimer {
    root: u32,
    period: Micros,
    due: Micros,
}

/// A stream with a waiting request.
struct WaitingStream {
    pointer: StreamPointer,
    scheduler: Scheduler,
}

/// What happens to a waiting request.
pub(crate) struct Action {
    stream: u32,
    pointer: StreamPointer,
    step: Step,
}

impl Action {
    /// Takes the step. The stream may end within.
    pub(crate) fn run(self) {
        let mut call = self.pointer.call();
        match self.step.apply(&mut call) {
            Next::Continue => call.resume(),
            Next::Wait => {}
            Next::Reply(reply) => response::send(*reply, call),
        }
    }
}

impl HostState {
    pub(crate) fn new(cell: usize, module: &'static Module) -> HostState {
        HostState {
            cell,
            module,
            token: Cell::default(),
            stream: Cell::default(),
            timers: RefCell::default(),
            timers_changed: Cell::default(),
            handed_over: Cell::default(),
            waiting: RefCell::default(),
            actions: RefCell::default(),
            replies: RefCell::default(),
            headers: Cell::default(),
        }
    }

    /// The number of a new stream.
    pub(crate) fn new_stream(&self) -> u32 {
        let next = self.stream.get().wrapping_add(1) % FIRST_ROOT;
        self.stream.set(next);
        next
    }

    /// Returns true once the worker has had a request.
    fn has_had_requests(&self) -> bool {
        self.stream.get() > 0
    }

    /// Continues the numbers of another host, since its streams and calls may still be open, and
    /// takes its actions.
    pub(crate) fn continue_from(&self, other: &HostState) {
        self.stream.set(other.stream.get());
        self.token.set(other.token.get());
        self.actions.replace(other.actions.take());
    }

    /// The request of a stream waits.
    pub(crate) fn wait(&self, stream: u32, call: &StreamCall<'_>) {
        let waiting = WaitingStream { pointer: call.pointer(), scheduler: call.scheduler() };
        self.waiting.borrow_mut().insert(stream, waiting);
    }

    /// A stream has a response, or has ended.
    pub(crate) fn forget(&self, stream: u32) {
        self.stop_waiting(stream);
        self.actions.borrow_mut().retain(|action| action.stream != stream);
    }

    fn stop_waiting(&self, stream: u32) -> Option<StreamPointer> {
        let waiting = self.waiting.borrow_mut().remove(&stream)?;
        if self.handed_over.get() == Some(stream) && !self.hand_over() {
            self.take_over();
        }
        Some(waiting.pointer)
    }

    /// Lets the thread of a waiting stream do the work of the worker. Returns false if no stream waits.
    pub(crate) fn hand_over(&self) -> bool {
        let waiting = self.waiting.borrow();
        let Some((&stream, first)) = waiting.first_key_value() else { return false };
        first.scheduler.commit(TICK);
        self.handed_over.set(Some(stream));
        self.timers_changed.set(true);
        true
    }

    /// The work is not handed over any more.
    pub(crate) fn take_over(&self) {
        self.handed_over.set(None);
        self.timers_changed.set(true);
    }

    /// Lets no request wait any longer.
    pub(crate) fn let_pass(&self) {
        self.waiting.borrow().values().for_each(|waiting| waiting.scheduler.commit(PASS));
    }

    /// Ends the wait of a request soon.
    pub(crate) fn conclude(&self, stream: u32, pointer: StreamPointer, next: Next) {
        let step = Step { effects: None, next };
        self.actions.borrow_mut().push_back(Action { stream, pointer, step });
    }

    /// Takes steps of the worker, to be run after its call.
    pub(crate) fn keep(&self, steps: Steps) {
        for (stream, step) in steps {
            let pointer = match step.next {
                Next::Wait => self.pointer(stream),
                Next::Continue | Next::Reply(_) => self.stop_waiting(stream),
            };
            let action = |pointer| Action { stream, pointer, step };
            self.actions.borrow_mut().extend(pointer.map(action));
        }
    }

    /// The stream of a waiting request.
    fn pointer(&self, stream: u32) -> Option<StreamPointer> {
        self.waiting.borrow().get(&stream).map(|waiting| waiting.pointer)
    }

    /// The next request to be continued or answered.
    pub(crate) fn next_action(&self) -> Option<Action> {
        self.actions.borrow_mut().pop_front()
    }

    /// A call has a reply.
    pub(crate) fn add_reply(&self, call: CallId, reply: CallReply) {
        self.timers_changed.set(true);
        self.replies.borrow_mut().push((call, reply));
    }

    /// Takes the replies.
    pub(crate) fn take_replies(&self) -> Vec<(CallId, CallReply)> {
        self.replies.take()
    }

    /// When the next work is due.
    pub(crate) fn due(&self) -> Micros {
        if self.handed_over.get().is_some() {
            return Micros::MAX;
        }
        if !self.replies.borrow().is_empty() {
            return 0;
        }
        self.timers.borrow().iter().map(|timer| timer.due).min().unwrap_or(Micros::MAX)
    }

    /// Takes the roots with due timers, and restarts their periods.
    pub(crate) fn take_due(&self, now: Micros) -> Vec<u32> {
        self.timers_changed.set(true);
        let mut timers = self.timers.borrow_mut();
        let due = timers.iter_mut().filter(|timer| timer.due <= now);
        due.map(|timer| {
            timer.due = now.saturating_add(timer.period);
            timer.root
        })
        .collect()
    }

    /// A root has ended.
    pub(crate) fn end_root(&self, root: u32) {
        self.timers.borrow_mut().retain(|timer| timer.root != root);
    }

    fn set_timer(&self, root: u32, milliseconds: u32) {
        self.timers_changed.set(true);
        let mut timers = self.timers.borrow_mut();
        timers.retain(|timer| timer.root != root);
        if milliseconds > 0 {
            let period = Micros::from(milliseconds) * MILLISECOND;
            let due = self.module.clock.monotonic().saturating_add(period);
            timers.push(RootTimer { root, period, due });
        }
    }
}

/// A call of the host about a root or one of its streams.
pub(crate) struct HostCall<'s> {
    root: u32,
    state: &'s HostState,
}

impl<'s> HostCall<'s> {
    pub(crate) fn new(root: u32, state: &'s HostState) -> HostCall<'s> {
        HostCall { root, state }
    }
}

impl Callout for HostCall<'_> {
    fn send(&self, call: &Call) -> Result<u32, &'static str> {
        let module = self.state.module;
        let token = self.state.token.get().wrapping_add(1);
        self.state.token.set(token);
        let id = CallId { cell: self.state.cell, root: self.root, token };
        match &call.destination {
            Destination::Cluster(_) => module.calls.send(id, call, &module.configurations)?,
            pipe @ Destination::Pipe(path) => {
                let (pipe, has_had_requests) = (pipe.clone(), self.state.has_had_requests());
                let record = move |reached: Result<(), &str>| {
                    module.calls.record_pipe(&pipe, reached, has_had_requests);
                };
                let deliver = move |reply| {
                    module.guarded("pipe", || module.deliver(id, reply));
                };
                module.pipe.send(path, call, record, deliver)?;
            }
        }
        Ok(token)
    }

    fn caller(&self) -> u32 {
        self.root
    }
}

impl Clocks for HostCall<'_> {
    fn monotonic(&self) -> Micros {
        self.state.module.clock.monotonic()
    }

    fn wall(&self) -> Micros {
        clock::wall()
    }
}

impl Log for HostCall<'_> {
    fn log(&self, level: Level, line: &str) {
        let level = match level {
            Level::Info => LogLevel::Info,
            Level::Warn => LogLevel::Warn,
            Level::Error => LogLevel::Error,
        };
        abi::log(level, line);
    }
}

impl Metrics for HostCall<'_> {
    fn add(&self, metric: Metric, labels: &[&str], change: i64) {
        let Module { metrics, configurations, .. } = self.state.module;
        metrics.add(metric, labels, change, configurations);
    }

    fn set(&self, metric: Metric, labels: &[&str], value: u64) {
        let Module { metrics, configurations, .. } = self.state.module;
        metrics.set(metric, labels, value, configurations);
    }

    fn record(&self, metric: Metric, labels: &[&str], values: &[u64]) {
        let Module { metrics, configurations, .. } = self.state.module;
        metrics.record(metric, labels, values, configurations);
    }
}

impl Host for HostCall<'_> {
    fn data(&self) -> Rc<dyn SharedData> {
        Rc::new(&self.state.module.values)
    }

    fn process(&self) -> Option<&'static Process> {
        Some(&self.state.module.process)
    }

    fn environment(&self) -> &dyn Environment {
        self
    }

    fn module(&self) -> ModuleKind {
        ModuleKind::Native
    }

    fn switches(&self) -> Switches {
        self.state.module.configurations.switches(self.root)
    }

    fn set_period(&self, root: u32, milliseconds: u32) -> bool {
        self.state.set_timer(root, milliseconds);
        // The host ends each root by a call.
        true
    }

    fn request(&self, stream: u32, _: bool, read: &mut dyn FnMut(&dyn Request)) {
        if let Some(pointer) = self.state.pointer(stream) {
            read(&HostRequest::new(&pointer.call(), &self.state.headers));
        }
    }

    fn counter(&self, metric: Metric, labels: &[&str]) -> u64 {
        self.state.module.metrics.total(metric, labels)
    }

    fn random(&self) -> u128 {
        let mut bytes = [0; 16];
        // Needs no file, of which the process may have no further one.
        if getrandom::fill(&mut bytes).is_ok() { u128::from_le_bytes(bytes) } else { 0 }
    }
}

impl Environment for HostCall<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    /// As the command line of Envoy has it: no callback of Envoy returns the node.
    fn node(&self) -> Option<String> {
        let mut arguments = std::env::args_os();
        arguments.find(|argument| argument == "--service-node")?;
        arguments.next()?.into_string().ok()
    }

    fn has_secrets(&self) -> bool {
        abi::has_secrets()
    }

    fn password(&self) -> Option<String> {
        self.state.module.configurations.password(self.root)
    }
}
