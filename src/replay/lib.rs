//! Requests of an access log, or generated ones, replayed through gateways on a clock of their own.
//!
//! [`ReplayFleet`] has several gateways of several workers. Each worker is a
//! [`diana_worker::Worker`], the one that runs in Envoy: holding requests, timers and settling at
//! the end of a stream are its code. The crate provides what Envoy provides otherwise. `host.rs`
//! has the clock, the timer and the metrics, `data.rs` the shared data in memory. No host calls
//! Redis here: a rule for the whole fleet is counted in shared data that all gateways have in
//! common.
//!
//! [`LogReader`] reads the lines of access logs (`log.rs`).

mod data;
mod decision;
mod fleet;
mod host;
mod log;
mod plain;
mod worker;

pub use decision::ReplayDecision;
pub use fleet::ReplayFleet;
pub use log::{FieldMapping, LogEntry, LogReader};
pub use plain::PlainRequest;

use diana_policy::port::{Ending, Request};
use diana_policy::time::Micros;

/// A request, and how its stream ends if the request is admitted.
pub trait Arrival: Request + Ending {
    /// When the request arrives, in microseconds since the epoch.
    fn at(&self) -> Micros;

    /// Microseconds from the admission of the request to the end of its stream.
    fn took(&self) -> Micros;
}
