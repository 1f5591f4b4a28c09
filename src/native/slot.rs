//! The state of each worker.

use std::collections::BTreeMap;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use diana_policy::port::Answer;
use diana_policy::time::Micros;
use diana_worker::{Root, Worker};

use crate::abi::Confined;
use crate::calls::Reply;
use crate::host::{HostCall, HostState};
use crate::{clock, config};

/// The event of a waiting stream that runs the timers of its worker.
pub(crate) const TICK: u64 = 0;

/// The event of a waiting stream after its worker has failed.
pub(crate) const PASS: u64 = 1;

static SLOTS: OnceLock<Box<[Slot]>> = OnceLock::new();

/// The slots of all workers.
pub(crate) fn all() -> &'static [Slot] {
    SLOTS.get().map(|slots| &**slots).unwrap_or_default()
}

/// Creates a slot for each worker. Their number never changes.
pub(crate) fn create(workers: usize) {
    SLOTS.get_or_init(|| (0..workers).map(Slot::new).collect());
}

/// A worker behind its mutex.
pub(crate) struct Slot {
    worker: Mutex<Confined<WorkerState>>,
    /// When its next timer fires.
    due: AtomicU64,
}

/// A worker, its roots by their numbers, and its host.
pub(crate) struct WorkerState {
    pub(crate) worker: Worker,
    pub(crate) host: HostState,
    roots: BTreeMap<u32, Root>,
    /// How often the worker was built. Streams of an earlier one are not its own.
    pub(crate) generation: u32,
}

impl Slot {
    fn new(number: usize) -> Slot {
        let worker = Mutex::new(Confined::new(WorkerState::new(number, 0)));
        Slot { worker, due: AtomicU64::new(Micros::MAX) }
    }

    /// Calls the worker. Hooks must not be called within.
    #[inline]
    pub(crate) fn enter<T>(&self, call: impl FnOnce(&mut WorkerState) -> T) -> T {
        self.visit(|state| {
            #[cfg(feature = "faults")]
            crate::faults::injected::panic();
            call(state)
        })
    }

    /// Uses what the adapter itself has about the worker, such as its waiting requests. Works after
    /// a panic of the worker, too.
    pub(crate) fn with_host<T>(&self, call: impl FnOnce(&HostState) -> T) -> T {
        self.visit(|state| call(&state.host))
    }

    #[inline]
    fn visit<T>(&self, call: impl FnOnce(&mut WorkerState) -> T) -> T {
        let mut guard = self.lock();
        let state = guard.get();
        let done = call(state);
        if state.host.timers_changed.take() {
            let due = state.host.due();
            self.due.store(due, Ordering::SeqCst);
            clock::notify(due);
        }
        done
    }

    fn lock(&self) -> MutexGuard<'_, Confined<WorkerState>> {
        self.worker.lock().unwrap_or_else(|poisoned| {
            let mut guard = poisoned.into_inner();
            guard.get().rebuild();
            self.worker.clear_poison();
            guard
        })
    }

    /// When its next timer fires.
    pub(crate) fn due(&self) -> Micros {
        self.due.load(Ordering::SeqCst)
    }

    /// Runs the timers that are due, or makes the worker's thread do so.
    pub(crate) fn fire(&self) {
        self.enter(|state| {
            if !state.host.hand_over() {
                state.tick();
            }
        });
    }

    /// Rebuilds the worker if a panic has left it in an unknown state.
    pub(crate) fn recover(&self) {
        if self.worker.is_poisoned() {
            self.visit(|_| ());
        }
    }
}

impl WorkerState {
    fn new(number: usize, generation: u32) -> WorkerState {
        let (worker, host) = (Worker::default(), HostState::new(number));
        WorkerState { worker, host, roots: BTreeMap::new(), generation }
    }

    /// Applies a configuration. Returns false if it is invalid.
    pub(crate) fn configure(&mut self, number: u32, name: &[u8], text: &[u8]) -> bool {
        let root = self.roots.entry(number).or_default();
        root.configure(text, name, &self.worker, &HostCall::new(number, &self.host))
    }

    /// Ends a configuration.
    pub(crate) fn end(&mut self, number: u32) {
        if let Some(mut root) = self.roots.remove(&number) {
            root.end(&self.worker, &HostCall::new(number, &self.host));
            self.host.end_root(number);
        }
    }

    /// The root of a configuration. `None` if it could not be rebuilt after a panic.
    pub(crate) fn root(&self, number: u32) -> Option<&Root> {
        self.roots.get(&number)
    }

    /// A call has a reply. Only the worker's thread may resume requests, so it processes the reply if any wait.
    pub(crate) fn deliver(&mut self, reply: Reply) {
        self.host.add_reply(reply);
        if !self.host.hand_over() {
            self.tick();
        }
    }

    /// Processes replies, and runs the timers that are due.
    pub(crate) fn tick(&mut self) {
        for Reply { root: number, token, status, body, etag } in self.host.take_replies() {
            if let Some(root) = self.roots.get_mut(&number) {
                let (size, body) = (body.len(), || Some(body.clone()));
                let answer = Answer { status, size, body: &body, etag: &|| etag.clone() };
                let host = HostCall::new(number, &self.host);
                self.host.keep(root.on_reply(token, &answer, &self.worker, &host));
            }
        }
        for number in self.host.take_due(clock::monotonic()) {
            if let Some(root) = self.roots.get_mut(&number) {
                let host = HostCall::new(number, &self.host);
                self.host.keep(root.tick(&self.worker, &host));
            }
        }
    }

    /// Replaces a worker in an unknown state by a new one with the same configurations. Its waiting requests wait no longer.
    fn rebuild(&mut self) {
        let generation = self.generation.wrapping_add(1);
        let fresh = WorkerState::new(self.host.slot, generation);
        let broken = mem::replace(self, fresh);
        broken.host.let_pass();
        self.host.continue_from(&broken.host);
        // Dropping it may panic again.
        _ = catch_unwind(AssertUnwindSafe(|| drop(broken)));
        for (number, name, text) in config::all() {
            let built = catch_unwind(AssertUnwindSafe(|| self.configure(number, &name, &text)));
            if built.is_err() {
                // Its requests are not checked.
                if let Some(root) = self.roots.remove(&number) {
                    mem::forget(root);
                }
            }
        }
        self.host.timers_changed.set(true);
    }
}
