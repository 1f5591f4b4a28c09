//! The worker of this VM.

use std::cell::OnceCell;

use super::one_thread::OneThread;
use diana_worker::Worker;

static WORKER: OneThread<OnceCell<Worker>> = OneThread::new(OnceCell::new());

/// The worker.
pub(super) fn worker() -> &'static Worker {
    WORKER.get_or_init(Worker::default)
}
