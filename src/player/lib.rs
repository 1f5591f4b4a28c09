//! Requests that come to gateways on a clock of their own: those of a log, or made up. They are judged by the core's own
//! limiters, one for each worker, which are called at the instants at which a proxy would call them.

pub mod fleet;
pub mod host;
pub mod worker;

use diana_policy::port::{Ending, Request};
use diana_policy::time::Micros;

pub use fleet::Fleet;
pub use worker::{Fate, Judged};

/// A request that comes, and how it ends if it goes on.
pub trait Arrival: Request + Ending {
    /// When it comes.
    fn at(&self) -> Micros;

    /// How long it takes until it ends, in ticks.
    fn took(&self) -> Micros;
}
