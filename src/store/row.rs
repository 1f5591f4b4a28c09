//! What a request found of its caller in this worker's table.

use super::state::State;
use super::table::Place;
use diana_policy::time::{Micros, Now};

/// A caller's row as a request found it.
pub struct Row {
    pub(super) place: Place,
    /// The state of the table for which that is true.
    pub(super) version: u64,
    /// The instant that is decided about.
    pub(super) at: Now,
    /// The state after a charge of a request that leaves so many ticks later; once it was charged, the
    /// state before.
    pub(super) other: State,
    pub(super) delay: Micros,
}
