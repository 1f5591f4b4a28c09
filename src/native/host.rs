//! The capabilities of the host during one of its calls.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::LazyLock;

use diana_limiter::Refusal;
use diana_policy::port::{
    Call as OutCall, Callout, Destination, Environment, Metrics, Request, SharedData,
};
use diana_policy::time::{Micros, SECOND};
use diana_policy::{ModuleKind, Switches};
use diana_store::process::Process;
use diana_worker::AdminReply;
use diana_worker::host::{Clocks, Contexts, Host, Level, Log, Streams};

use crate::abi::{self, Call, HeaderMemory, LogLevel, Map, Scheduler, StreamPointer};
use crate::calls::{Caller, Reply};
use crate::data::ProcessData;
use crate::request::HostRequest;
use crate::response::Response;
use crate::slot::{PASS, TICK};
use crate::{calls, clock, config, metrics, pipe};

/// The first number of a root. Streams have smaller ones.
pub(crate) const FIRST_ROOT: u32 = 1 << 31;

const MILLISECOND: Micros = SECOND / 1000;

/// The filter state for the access log. The wasm host begins its names with `wasm.`, and one format of the access log fits both.
const LOG: &str = "wasm.diana";

/// Between the entries of several filters in it.
const SEPARATOR: &[u8] = b"; ";

/// The filter state which shows that this header is a mark.
pub(crate) fn state_of_mark(header: &str) -> String {
    ["wasm.diana_mark.", header].concat()
}

/// The state of a worker's host between two calls.
pub(crate) struct HostState {
    /// The number of the worker's slot.
    pub(crate) slot: usize,
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
    replies: RefCell<Vec<Reply>>,
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

/// A change of a stream, to be made after the worker's call.
pub(crate) enum Change {
    /// Marks the request with a header.
    Mark(String, String),
    /// Removes a header of the request.
    Remove(String),
    /// Adds an entry for the access log.
    Log(Vec<u8>),
}

/// What happens to a waiting request.
pub(crate) struct Action {
    stream: u32,
    pointer: StreamPointer,
    changes: Vec<Change>,
    /// Without one, the request continues.
    response: Option<Response>,
}

impl Change {
    /// Makes the change.
    pub(crate) fn apply(&self, call: &mut Call<'_>) {
        match self {
            Change::Mark(header, value) => {
                call.add_header(Map::Request, header, value.as_bytes());
                let state = state_of_mark(header);
                if call.filter_state(state.as_bytes()).is_none() {
                    call.set_filter_state(&state, b"1");
                }
                call.clear_route_cache();
            }
            Change::Remove(header) => {
                call.remove_header(header);
                call.clear_route_cache();
            }
            Change::Log(entry) => {
                let earlier =
                    call.filter_state(LOG.as_bytes()).filter(|earlier| !earlier.is_empty());
                let all = earlier.map(|earlier| [earlier, SEPARATOR, entry].concat());
                // Envoy 1.38 writes each entry once, and otherwise reports a bug in Envoy.
                if all.is_none() || abi::has_config_metrics() {
                    call.set_filter_state(LOG, all.as_deref().unwrap_or(entry));
                }
            }
        }
    }
}

impl Action {
    /// Continues or answers the request. Its stream may end within.
    pub(crate) fn run(self) {
        let mut call = self.pointer.call();
        self.changes.iter().for_each(|change| change.apply(&mut call));
        match self.response {
            Some(response) => response.send(call),
            None => call.resume(),
        }
    }
}

impl HostState {
    pub(crate) fn new(slot: usize) -> HostState {
        HostState {
            slot,
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
    pub(crate) fn wait(&self, stream: u32, call: &Call<'_>) {
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

    /// Continues or answers a request soon.
    pub(crate) fn conclude(&self, stream: u32, pointer: StreamPointer, response: Option<Response>) {
        let action = Action { stream, pointer, changes: Vec::new(), response };
        self.actions.borrow_mut().push_back(action);
    }

    /// The next request to be continued or answered.
    pub(crate) fn next_action(&self) -> Option<Action> {
        self.actions.borrow_mut().pop_front()
    }

    /// A call has a reply.
    pub(crate) fn add_reply(&self, reply: Reply) {
        self.timers_changed.set(true);
        self.replies.borrow_mut().push(reply);
    }

    /// Takes the replies.
    pub(crate) fn take_replies(&self) -> Vec<Reply> {
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
            timers.push(RootTimer { root, period, due: clock::monotonic().saturating_add(period) });
        }
    }
}

/// A call of the host about a root or one of its streams.
pub(crate) struct HostCall<'s> {
    root: u32,
    state: &'s HostState,
    /// The selected root or waiting stream.
    selected: Cell<u32>,
    /// Changes of the selected stream, or of that of the hook.
    changes: RefCell<Vec<Change>>,
    /// The response to the request of the hook.
    response: RefCell<Option<Response>>,
}

impl<'s> HostCall<'s> {
    pub(crate) fn new(root: u32, state: &'s HostState) -> HostCall<'s> {
        let (changes, response) = (RefCell::default(), RefCell::default());
        HostCall { root, state, selected: Cell::new(root), changes, response }
    }

    /// The changes of the stream of the hook, and the response to its request.
    pub(crate) fn into_effects(self) -> (Vec<Change>, Option<Response>) {
        (self.changes.into_inner(), self.response.into_inner())
    }

    fn change(&self, change: Change) {
        self.changes.borrow_mut().push(change);
    }

    fn respond(&self, response: Response) {
        let stream = self.selected.get();
        match self.state.stop_waiting(stream) {
            Some(pointer) => self.act(stream, pointer, Some(response)),
            None => _ = self.response.replace(Some(response)),
        }
    }

    fn act(&self, stream: u32, pointer: StreamPointer, response: Option<Response>) {
        let action = Action { stream, pointer, changes: self.changes.take(), response };
        self.state.actions.borrow_mut().push_back(action);
    }
}

impl Callout for HostCall<'_> {
    fn send(&self, call: &OutCall) -> Result<u32, &'static str> {
        let token = self.state.token.get().wrapping_add(1);
        self.state.token.set(token);
        let caller = Caller { slot: self.state.slot, root: self.root, token };
        match &call.destination {
            Destination::Cluster(_) => calls::send(caller, call)?,
            Destination::Pipe(path) => {
                pipe::send(caller, path, call, self.state.has_had_requests())?
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
        clock::monotonic()
    }

    fn wall(&self) -> Micros {
        clock::wall()
    }
}

impl Contexts for HostCall<'_> {
    fn enter(&self, context: u32) -> bool {
        self.selected.set(context);
        // The host ends each root by a separate call.
        context >= FIRST_ROOT || self.state.waiting.borrow().contains_key(&context)
    }

    fn set_period(&self, milliseconds: u32) {
        self.state.set_timer(self.selected.get(), milliseconds);
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
    fn count(&self, name: &str, amount: u64) {
        metrics::count(name, amount);
    }

    fn gauge(&self, name: &str, change: i64) {
        metrics::gauge(name, change);
    }

    fn set(&self, name: &str, value: u64) {
        metrics::set(name, value);
    }

    fn record(&self, name: &str, value: u64) {
        metrics::record(name, value);
    }
}

impl Streams for HostCall<'_> {
    fn read(&self, _: bool, read: &mut dyn FnMut(&dyn Request)) {
        let stream = self.selected.get();
        let pointer = self.state.waiting.borrow().get(&stream).map(|waiting| waiting.pointer);
        if let Some(pointer) = pointer {
            read(&HostRequest::new(&pointer.call(), &self.state.headers));
        }
    }

    fn mark(&self, header: &str, value: &str) {
        self.change(Change::Mark(header.into(), value.into()));
    }

    fn remove_header(&self, header: &str) {
        self.change(Change::Remove(header.into()));
    }

    fn set_filter_state(&self, state: &[u8]) {
        self.change(Change::Log(state.into()));
    }

    fn refuse(&self, refusal: &Refusal, request: &dyn Request) {
        let state = refusal.by.state();
        if refusal.is_logged {
            self.log(Level::Warn, &state);
        }
        self.change(Change::Log(state.into_bytes()));
        self.respond(Response::refusal(refusal, request));
    }

    fn reply(&self, reply: &AdminReply) {
        self.respond(Response::admin(reply));
    }

    fn resume(&self, stream: u32) {
        if let Some(pointer) = self.state.stop_waiting(stream) {
            self.act(stream, pointer, None);
        }
        self.selected.set(self.root);
    }
}

impl Host for HostCall<'_> {
    fn data(&self) -> Rc<dyn SharedData> {
        Rc::new(ProcessData)
    }

    fn process(&self) -> Option<&'static Process> {
        static PROCESS: LazyLock<Process> = LazyLock::new(Process::default);
        Some(&PROCESS)
    }

    fn environment(&self) -> &dyn Environment {
        self
    }

    fn module(&self) -> ModuleKind {
        ModuleKind::Native
    }

    fn switches(&self) -> Switches {
        config::switches(self.root)
    }

    fn counter(&self, name: &str) -> u64 {
        metrics::total(name)
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

    fn has_secrets(&self) -> bool {
        abi::has_secrets()
    }

    fn password(&self) -> Option<String> {
        config::password(self.root)
    }
}
