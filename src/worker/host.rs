//! Capabilities of the host that only the worker needs.

use std::rc::Rc;

use super::reply::AdminReply;
use diana_limiter::{Refusal, Verdict, Waiter};
use diana_policy::port::{Callout, Environment, Metrics, Request, SharedData};
use diana_policy::time::Micros;
use diana_policy::{ModuleKind, Switches};
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

/// The roots and streams of the worker, by the host's numbers. The host applies a call to the
/// context of its current call, or to the latest one that was entered.
pub trait Contexts {
    /// Selects a root or a stream for the following calls. Returns false if it does not exist.
    /// Calls about a stream that has ended do nothing.
    fn enter(&self, context: u32) -> bool;

    /// Sets the period of the root's timer in milliseconds. 0 disables it.
    fn set_period(&self, milliseconds: u32);
}

/// The request of a stream.
pub trait Streams {
    /// Reads the request of the selected stream. `reads_headers` is true if headers other than the
    /// path will be read.
    fn read(&self, reads_headers: bool, read: &mut dyn FnMut(&dyn Request));

    /// Marks the request with a header, before the host selects its route. A mark of an earlier
    /// filter in the chain stays.
    fn mark(&self, header: &str, value: &str);

    /// Removes a header that the request has, before the host selects its route.
    fn remove_header(&self, header: &str);

    /// Adds an entry to the filter state for the access log, after those of earlier filters in the
    /// chain.
    fn set_filter_state(&self, state: &[u8]);

    /// Responds to this request, that of the selected stream, with a refusal.
    fn refuse(&self, refusal: &Refusal, request: &dyn Request);

    /// Responds to an operator.
    fn reply(&self, reply: &AdminReply);

    /// Resumes the paused request of a stream, independent of the selected one, and selects the
    /// root.
    fn resume(&self, stream: u32);

    /// Observes a decision about the request of a stream, unless it passes without a trace.
    /// `resumed` is given if the request waited for Redis.
    fn on_decision(&self, _stream: u32, _waiter: Option<&Waiter>, _verdict: &Verdict) {}
}

/// The host during a call about a root or one of its streams. [`Callout::caller`] is that root.
pub trait Host: Callout + Clocks + Contexts + Log + Metrics + Streams {
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

    /// The value of a counter, summed over all workers.
    fn counter(&self, name: &str) -> u64;

    /// Random bits. Zero if the host has none.
    fn random(&self) -> u128;
}
