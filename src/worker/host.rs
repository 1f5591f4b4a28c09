//! What a worker needs of its host, beyond the ports of the core.

use std::rc::Rc;

use super::reply::AdminReply;
use diana_limiter::engine::Resumed;
use diana_limiter::report::Refusal;
use diana_limiter::verdict::Verdict;
use diana_policy::port::{Callout, Environment, Metrics, Request, SharedData};
use diana_policy::time::Micros;

/// How much a line of the log matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Something happened as it should.
    Info,
    /// Something needs a look.
    Warn,
    /// Something does not work.
    Error,
}

/// The log.
pub trait Log {
    /// Writes a line.
    fn log(&self, level: Level, line: &str);
}

/// Both clocks, in ticks.
pub trait Clocks {
    /// The monotonic one.
    fn monotonic(&self) -> Micros;

    /// The wall clock, since the epoch. It may step back.
    fn wall(&self) -> Micros;
}

/// The roots and streams of the worker, by the host's numbers. The host does what it is asked about the one that it
/// is calling about, or the one that was entered last.
pub trait Contexts {
    /// Makes a root or a stream the one that what follows is about. Whether there is such a one; what is asked about a
    /// stream that has ended does nothing.
    fn enter(&self, context: u32) -> bool;

    /// Calls the root again and again, after so many milliseconds each; 0 is never.
    fn set_period(&self, milliseconds: u32);
}

/// The request of a stream.
pub trait Streams {
    /// Reads the request of the stream that was entered. `reads_headers` says whether more of it is going to be read
    /// than the path.
    fn read(&self, reads_headers: bool, read: &mut dyn FnMut(&dyn Request));

    /// Sets a header of the request, before the host has chosen its route.
    fn mark(&self, header: &str, value: &str);

    /// Takes a header off the request, which it bears, before the host has chosen its route.
    fn take_off(&self, header: &str);

    /// Leaves the filter state for the access log.
    fn tell(&self, state: &[u8]);

    /// Answers the request with a refusal.
    fn refuse(&self, refusal: &Refusal);

    /// Answers the request of an operator.
    fn reply(&self, reply: &AdminReply);

    /// Lets the request of a stream go on that was paused, whichever was entered, and enters the root.
    fn resume(&self, stream: u32);

    /// Is told what was decided about the request of a stream, unless it simply goes on, and what it waited for, if it
    /// did.
    fn decided(&self, _stream: u32, _resumed: Option<&Resumed>, _verdict: &Verdict) {}
}

/// The host, while it is calling about a root or one of its streams. [`Callout::caller`] is that root.
pub trait Host: Callout + Clocks + Contexts + Log + Metrics + Streams {
    /// What all workers share.
    fn data(&self) -> Rc<dyn SharedData>;

    /// The environment of the worker.
    fn environment(&self) -> &dyn Environment;

    /// How much was counted by all workers under this name.
    fn counted(&self, name: &str) -> u64;

    /// Random bits; zero if the host has none.
    fn random(&self) -> u128;
}
