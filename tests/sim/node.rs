//! A gateway and its workers, as the world sees them. `shipped` and `native` implement them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use diana_policy::time::{Micros, Now, SECOND};
use fastrand::Rng;

use super::plan::{EPOCH, TOKEN};

/// A request as a client sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// Index of the requested entry in the plan.
    pub entry: usize,
    pub caller: u32,
    /// Whether the caller has the larger plan.
    pub is_gold: bool,
    /// The permits that the request estimates, and the first day of its caller's months, in metadata.
    pub estimate: Option<u64>,
    pub month_day: Option<u8>,
    /// An operator's request.
    pub order: Option<Order>,
}

/// An operator's request about a caller of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub rule: String,
    pub of_all: bool,
    /// Whether what the caller has used is reset; otherwise it is shown.
    pub is_reset: bool,
}

impl Visit {
    pub fn path(&self) -> String {
        let Some(Order { rule, of_all, is_reset }) = &self.order else {
            return format!("/e{}", self.entry);
        };
        let what = if *is_reset { "reset" } else { "usage" };
        let caller = format!("&actor.account={}", self.account());
        format!("/.diana/{what}?rule={rule}{}", if *of_all { "" } else { &caller })
    }

    pub fn method(&self) -> &'static str {
        if matches!(self.order, Some(Order { is_reset: true, .. })) { "POST" } else { "GET" }
    }

    /// The operator's credentials.
    pub fn authorization(&self) -> Option<String> {
        self.order.is_some().then(|| format!("Bearer {}", TOKEN.1))
    }

    /// The metadata of the request: keys, and numbers as the host writes them.
    pub fn metadata(&self) -> Vec<([&'static str; 4], [u8; 8])> {
        let property =
            |key, number: f64| (["metadata", "filter_metadata", "sim", key], number.to_le_bytes());
        let estimate = self.estimate.map(|estimate| property("estimate", estimate as f64));
        let day = self.month_day.map(|day| property("day", day.into()));
        estimate.into_iter().chain(day).collect()
    }

    pub fn account(&self) -> String {
        format!("caller-{}", self.caller)
    }
}

/// The decision about a request so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamOutcome {
    Held,
    Admitted,
    Refused,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The upstream answers 200, with the permits that the request used in `x-used`.
    Served(u64),
    /// The upstream cannot be reached.
    Failed,
    /// The client leaves before there is a response.
    Left,
    /// The upstream answers with a redirect that the gateway follows itself.
    Followed,
}

/// A call over HTTP that a worker makes.
#[derive(Debug, Clone)]
pub struct Call {
    pub cluster: String,
    pub token: u32,
    pub body: Vec<u8>,
    pub timeout: Micros,
}

/// One thread of a gateway.
pub trait Worker {
    /// A listener receives a request. Returns the number of its stream.
    fn open(&mut self, listener: usize, visit: &Visit) -> u32;

    /// Ends a stream with a redirect and opens the stream of the request that follows it, under the same rules.
    fn follow(&mut self, stream: u32, visit: &Visit) -> u32;

    fn outcome(&mut self, stream: u32) -> StreamOutcome;

    /// Ends a stream; `end` matters only if its request was admitted. Returns the response's headers and body and the
    /// filter state, as text.
    fn end(&mut self, stream: u32, end: End) -> String;

    /// When the next timer fires, by the clock of the world.
    fn due(&mut self) -> Option<Micros>;

    /// Lets that timer fire.
    fn tick(&mut self);

    /// The calls made since the previous `calls`.
    fn calls(&mut self) -> Vec<Call>;

    /// Returns true if the log contains [`ALARM`] since the previous `is_alarmed`.
    fn is_alarmed(&mut self) -> bool;

    /// Answers a call; without a status its connection was reset. Ignored if the call's root has ended.
    fn answer(&mut self, token: u32, status: Option<u16>, body: &[u8]);

    /// Gives a listener other rules. Open streams keep their rules.
    fn configure(&mut self, listener: usize, document: &str);

    /// Streams and calls that the host and the worker still keep.
    fn leaks(&mut self) -> Vec<String>;

    /// Ends the rules that no listener uses, and their streams. Returns these streams.
    fn end_drain(&mut self) -> Vec<u32>;
}

/// Text of the log line of a gateway that begins to count alone.
pub const ALARM: &str = " unavailable: ";

/// Values by name.
pub type Metrics = BTreeMap<String, i64>;

/// Text of a response and of the filter state of its stream.
pub fn report(headers: &[(String, String)], body: &str, state: &str) -> String {
    let mut lines: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    // The module leaves some headers to the host, which adds them in another place.
    lines.sort_unstable();
    lines.extend([body.to_owned(), state.to_owned()]);
    lines.join("; ")
}

/// The clocks of a gateway when that of the world shows zero, and the seed of its random numbers.
pub fn draw(seed: u64, hours_ahead: u64) -> (Now, Rng) {
    let mut random = Rng::with_seed(seed);
    let mono = random.u64(1..1 << 40);
    (Now { mono, wall: EPOCH + hours_ahead * 3600 * SECOND }, random)
}

/// A process of several workers, which share data and clocks.
pub trait Gateway {
    /// Its clocks when that of the world shows zero.
    fn clocks(&self) -> Now;

    /// Sets its clocks to an instant of the world, which never goes back.
    fn set_time(&self, now: Micros);

    /// Its counters and gauges, except for those that are zero.
    fn metrics(&self) -> Metrics;

    /// Starts a worker with the rules of each listener.
    fn start(&mut self, documents: &[String]) -> Rc<RefCell<dyn Worker>>;

    /// Runs `other` in the middle of the next call of a worker, after `accesses` accesses to shared data.
    fn interrupt_after(&self, accesses: u32, other: Box<dyn FnOnce()>);

    /// Removes the interruption if it has not run.
    fn take_interruption(&self) -> Option<Box<dyn FnOnce()>>;
}
