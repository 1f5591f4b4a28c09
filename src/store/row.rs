//! A caller's row in this worker's table, as read for a request.

use super::state::State;
use super::table::RowLocation;
use diana_policy::time::Now;

/// A caller's row as read for a request.
pub struct Row {
    pub(super) location: RowLocation,
    /// The version of the table at which the other fields are valid.
    pub(super) version: u64,
    /// The instant of the decision.
    pub(super) at: Now,
    /// The state after the charge; once it is charged, the state before.
    pub(super) other: State,
}
