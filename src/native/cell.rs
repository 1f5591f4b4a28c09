//! The state of each worker.

use std::collections::BTreeMap;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use diana_policy::port::Answer;
use diana_policy::time::Micros;
use diana_worker::{Root, Worker};

use crate::abi::Confined;
use crate::calls::{CallId, CallReply};
use crate::host::{HostCall, HostState};
use crate::module::Module;

/// A worker behind its mutex.
pub(crate) struct WorkerCell {
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

impl WorkerCell {
    pub(crate) fn new(number: usize, module: &'static Module) -> WorkerCell {
        let state = WorkerState::new(HostState::new(number, module), 0);
        let worker = Mutex::new(Confined::new(state));
        WorkerCell { worker, due: AtomicU64::new(Micros::MAX) }
    }

    /// Calls the worker. Hooks must not be called within.
    #[inline]
    pub(crate) fn enter<T>(&self, call: impl FnOnce(&mut WorkerState) -> T) -> T {
        self.visit(|state| {
            #[cfg(feature = "faults")]
            crate::injected::panic();
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
            state.host.module.clock.notify(due);
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
    fn new(host: HostState, generation: u32) -> WorkerState {
        WorkerState { worker: Worker::default(), host, roots: BTreeMap::new(), generation }
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
    pub(crate) fn deliver(&mut self, call: CallId, reply: CallReply) {
        self.host.add_reply(call, reply);
        if !self.host.hand_over() {
            self.tick();
        }
    }

    /// Processes replies, and runs the timers that are due.
    pub(crate) fn tick(&mut self) {
        for (call, CallReply { status, body, headers }) in self.host.take_replies() {
            let CallId { root: number, token, .. } = call;
            if let Some(root) = self.roots.get_mut(&number) {
                let (size, body) = (body.len(), || Some(body.clone()));
                let header = |name: &str| {
                    let mut found = headers.iter().filter(|(known, _)| *known == name);
                    found.next().map(|(_, value)| value.clone())
                };
                let answer = Answer { status, size, body: &body, header: &header };
                let host = HostCall::new(number, &self.host);
                self.host.keep(root.on_reply(token, &answer, &self.worker, &host));
            }
        }
        for number in self.host.take_due(self.host.module.clock.monotonic()) {
            if let Some(root) = self.roots.get_mut(&number) {
                let host = HostCall::new(number, &self.host);
                self.host.keep(root.tick(&self.worker, &host));
            }
        }
    }

    /// Replaces a worker in an unknown state by a new one with the same configurations. Its waiting requests wait no longer.
    fn rebuild(&mut self) {
        let generation = self.generation.wrapping_add(1);
        let host = HostState::new(self.host.cell, self.host.module);
        let fresh = WorkerState::new(host, generation);
        let broken = mem::replace(self, fresh);
        broken.host.let_pass();
        self.host.continue_from(&broken.host);
        // Dropping it may panic again.
        _ = catch_unwind(AssertUnwindSafe(|| drop(broken)));
        for (number, name, text) in self.host.module.configurations.all() {
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
