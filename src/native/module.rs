//! The state of the module in one process of Envoy. A test can have several.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use diana_store::process::Process;

use crate::calls::{CallId, CallReply, Calls};
use crate::cell::WorkerCell;
use crate::clock::ModuleClock;
use crate::configurations::Configurations;
use crate::data::ProcessValues;
use crate::faults;
use crate::metrics::ProcessMetrics;
use crate::pipe::PipeThread;

/// The module. It lives as long as it is loaded, so threads and filters have references to it.
#[derive(Default)]
pub struct Module {
    pub(crate) clock: ModuleClock,
    pub(crate) configurations: Configurations,
    pub(crate) calls: Calls,
    pub(crate) pipe: PipeThread,
    pub(crate) metrics: ProcessMetrics,
    pub(crate) values: ProcessValues,
    pub(crate) process: Process,
    cells: OnceLock<Box<[WorkerCell]>>,
}

impl Module {
    /// Creates a cell for each worker. Their number never changes.
    pub(crate) fn create_cells(&'static self, workers: usize) {
        let create = || (0..workers).map(|number| WorkerCell::new(number, self)).collect();
        self.cells.get_or_init(create);
    }

    /// The cells of all workers.
    pub(crate) fn cells(&self) -> &[WorkerCell] {
        self.cells.get().map(|cells| &**cells).unwrap_or_default()
    }

    /// The worker of a call receives the reply.
    pub(crate) fn deliver(&self, call: CallId, reply: CallReply) {
        if let Some(cell) = self.cells().get(call.cell) {
            cell.enter(|state| state.deliver(call, reply));
        }
    }

    /// Runs a hook, or work of a thread of the module. A panic ends here: Envoy would abort.
    pub(crate) fn guarded<T>(&self, hook: &'static str, run: impl FnOnce() -> T) -> Option<T> {
        let done = faults::caught(hook, run);
        if done.is_none() {
            self.recover(hook);
        }
        done
    }

    /// Counts a panic, and rebuilds the worker in which it happened.
    pub(crate) fn recover(&self, hook: &'static str) {
        let recover = || {
            self.metrics.count_fault(hook, &self.configurations);
            self.cells().iter().for_each(WorkerCell::recover);
        };
        _ = catch_unwind(AssertUnwindSafe(recover));
    }
}
