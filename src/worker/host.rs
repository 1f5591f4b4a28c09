//! Capabilities of the host that only the worker needs.

use std::rc::Rc;

use diana_limiter::{Verdict, Waiter};
use diana_policy::port::{Callout, Environment, Metrics, Request, SharedData};
use diana_policy::time::Micros;
use diana_policy::{Metric, ModuleKind, Switches};
use diana_store::process::Process;

/// The severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Normal operation.
    Info,
    /// Operators should investigate.
    Warn,
    /// A failure.
    Error,
}

/// The log.
pub trait Log {
    /// Writes a line.
    fn log(&self, level: Level, line: &str);
}

/// Both clocks, in ticks.
pub trait Clocks {
    /// The monotonic clock.
    fn monotonic(&self) -> Micros;

    /// The wall clock since the Unix epoch. It may step back.
    fn wall(&self) -> Micros;
}

/// The host during a call about a root or one of its streams. [`Callout::caller`] is that root.
/// None of its functions calls the worker.
pub trait Host: Callout + Clocks + Log + Metrics {
    /// The data that all workers share.
    fn data(&self) -> Rc<dyn SharedData>;

    /// The process with the callers of `gateway` rules, if all workers are its threads.
    fn process(&self) -> Option<&'static Process> {
        None
    }

    /// The environment of the worker.
    fn environment(&self) -> &dyn Environment;

    /// The form of the module, which decides what documents may contain.
    fn module(&self) -> ModuleKind {
        ModuleKind::Wasm
    }

    /// The switches of operators for the root of the current call.
    fn switches(&self) -> Switches {
        Switches::default()
    }

    /// Sets the period of a root's timer in milliseconds. 0 disables it. Returns false if the host
    /// has deleted the root without a call.
    fn set_period(&self, root: u32, milliseconds: u32) -> bool;

    /// Reads the request of a stream, which waits. `reads_headers` is true if headers other than the
    /// path will be read.
    fn request(&self, stream: u32, reads_headers: bool, read: &mut dyn FnMut(&dyn Request));

    /// Observes a decision about the request of a stream, unless it passes without a trace.
    /// `resumed` is given if the request waited for Redis.
    fn on_decision(&self, _stream: u32, _resumed: Option<&Waiter>, _verdict: &Verdict) {}

    /// The value of a counter, summed over all workers.
    fn counter(&self, metric: Metric, labels: &[&str]) -> u64;

    /// Random bits. Zero if the host has none.
    fn random(&self) -> u128;
}
