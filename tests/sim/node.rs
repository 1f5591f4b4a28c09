//! A gateway and its workers, as the world sees them. `shipped` and `native` implement them.

use std::cell::RefCell;
use std::rc::Rc;

use diana_core::time::{Micros, Now};

/// A request as a client sends it.
#[derive(Debug, Clone)]
pub struct Visit {
    /// The place of the entry whose path is asked for.
    pub entry: usize,
    pub caller: u32,
    /// Whether the caller has the larger plan.
    pub is_gold: bool,
}

impl Visit {
    pub fn path(&self) -> String {
        format!("/e{}", self.entry)
    }

    pub fn account(&self) -> String {
        format!("caller-{}", self.caller)
    }
}

/// What has become of a request so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Held,
    Admitted,
    Refused,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The upstream answers 200, and says in `x-used` how many permits the request took.
    Served(u64),
    /// The upstream cannot be reached.
    Failed,
    /// The client leaves before there is a response.
    Left,
}

/// A call over HTTP that a worker makes.
#[derive(Debug, Clone)]
pub struct Call {
    pub token: u32,
    pub body: Vec<u8>,
    pub timeout: Micros,
}

/// One thread of a gateway.
pub trait Worker {
    /// A request comes to a listener. The number of its stream.
    fn open(&mut self, listener: usize, visit: &Visit) -> u32;

    fn fate(&mut self, stream: u32) -> Fate;

    /// The stream ends, as `end` says if its request was admitted.
    fn end(&mut self, stream: u32, end: End);

    /// When the next timer fires, by the clock of the world.
    fn due(&mut self) -> Option<Micros>;

    /// Lets that timer fire.
    fn tick(&mut self);

    /// The calls made since this was last asked.
    fn calls(&mut self) -> Vec<Call>;

    /// Whether the log said since this was last asked that Redis cannot be relied upon.
    fn is_alarmed(&mut self) -> bool;

    /// A call is answered; a status of nothing is a connection that broke off. The worker may have forgotten the call.
    fn answer(&mut self, token: u32, status: Option<u16>, body: &[u8]);

    /// A listener gets other rules. Streams that are open keep those that they came by.
    fn configure(&mut self, listener: usize, document: &str);

    /// Everything ends that belongs to rules which no listener has any more. The streams that ended with it.
    fn end_drain(&mut self) -> Vec<u32>;
}

/// What the log says when a gateway begins to count alone.
pub const ALARM: &str = "cannot be relied upon";

/// A process of several workers, which share data and clocks.
pub trait Gateway {
    /// Its clocks when that of the world shows zero.
    fn clocks(&self) -> Now;

    /// Sets its clocks to an instant of the world, which never goes back.
    fn set_time(&self, now: Micros);

    /// Starts a worker with the rules of each listener.
    fn start(&mut self, documents: &[String]) -> Rc<RefCell<dyn Worker>>;

    /// Has `other` run in the middle of what a worker does next, after so many accesses to shared data.
    fn interrupt_after(&self, accesses: u32, other: Box<dyn FnOnce()>);

    /// What was to interrupt a worker that did not access shared data so often.
    fn take_interruption(&self) -> Option<Box<dyn FnOnce()>>;
}
