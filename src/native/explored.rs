//! The clock, the threads and the calls of a module, in tests that have several, or try every order of events.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{MutexGuard, PoisonError};

use diana_policy::port::SharedData;
use diana_policy::time::Micros;

use crate::calls::CallReply;
use crate::pipe::KeptCall;
use crate::{hooks, timers};

pub use crate::module::Module;

/// The hook `config_new` of a module other than that of the process.
#[must_use]
pub fn config_new(
    module: &'static Module,
    config: *mut c_void,
    name: &[u8],
    text: &[u8],
) -> *const c_void {
    hooks::config_new(module, config, name, text).cast()
}

/// Sets the monotonic clock, before the first configuration. Afterwards the module starts no thread for timers, and calls to pipes
/// wait for the test.
pub fn set_clock(module: &Module, now: Micros) {
    module.clock.explored.get_or_init(AtomicU64::default).store(now, Ordering::SeqCst);
    kept(module).get_or_insert_default();
}

/// Until when the thread for timers would sleep.
#[must_use]
pub fn next_due(module: &Module) -> Micros {
    timers::next_due(module)
}

/// The thread for timers goes to sleep. `meanwhile` runs at each instant between its steps: 0 once it knows until when, 1 once
/// workers see that it sleeps, 2 once it has looked whether a timer was set before.
pub fn sleep(module: &Module, meanwhile: impl Fn(usize)) {
    let due = timers::next_due(module);
    meanwhile(0);
    module.clock.sleep(due, || {
        meanwhile(1);
        let is_stale = timers::next_due(module) != due;
        meanwhile(2);
        is_stale
    });
}

/// Until when the thread for timers sleeps. Zero while it is awake.
#[must_use]
pub fn sleeps_until(module: &Module) -> Micros {
    module.clock.sleeps_until()
}

/// The data that all workers share.
#[must_use]
pub fn data(module: &'static Module) -> impl SharedData {
    &module.values
}

/// Runs a wake-up of the thread for timers.
pub fn fire(module: &Module) {
    timers::fire(module);
}

/// A worker panics, without a line in the log.
pub fn fail(module: &Module, worker: usize) {
    let Some(cell) = module.cells().get(worker) else { return };
    _ = catch_unwind(AssertUnwindSafe(|| cell.enter(|_| resume_unwind(Box::new(())))));
    module.recover("explored");
}

fn kept(module: &Module) -> MutexGuard<'_, Option<Vec<KeptCall>>> {
    module.pipe.kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of calls to pipes without a reply.
#[must_use]
pub fn calls(module: &Module) -> usize {
    kept(module).as_ref().map_or(0, Vec::len)
}

/// One of the calls to pipes has the reply of this function to its bytes.
pub fn reply(module: &Module, number: usize, redis: impl FnOnce(&[u8]) -> Vec<u8>) {
    let call = kept(module).as_mut().filter(|kept| number < kept.len()).map(|it| it.remove(number));
    if let Some((body, deliver)) = call {
        deliver(CallReply { status: Some(200), body: redis(&body), headers: Vec::new() });
    }
}
