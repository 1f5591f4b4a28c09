//! The worker of this VM.

use diana_worker::Worker;

thread_local! {
    /// It lives as long as the VM, which has one thread.
    static WORKER: &'static Worker = Box::leak(Box::default());
}

/// The worker.
pub(super) fn worker() -> &'static Worker {
    WORKER.with(|worker| *worker)
}
