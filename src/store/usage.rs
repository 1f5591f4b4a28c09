//! A caller's usage, for operators.

use diana_algorithm::Balance;
use diana_policy::time::Micros;

/// A caller's remaining permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remaining {
    /// The permits.
    pub permits: u64,
    /// Ticks until more permits remain, as [`Balance::renewal`]; at the latest, if the store does
    /// not know the state.
    pub renewal: Option<Micros>,
}

impl From<Balance> for Remaining {
    fn from(balance: Balance) -> Remaining {
        Remaining { permits: balance.remaining, renewal: balance.renewal }
    }
}

/// The result of [`Store::maintain`](super::Store::maintain).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Maintained {
    /// True if it should be called again soon, even without requests.
    pub is_busy: bool,
    /// The change of the number of callers in this worker's memory since the last call.
    pub keys: i64,
}

/// A caller's usage of its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Used permits, without reservations and leases.
    pub used: u64,
    /// Reserved permits of requests in progress, if the algorithm counts them separately.
    pub reserved: u64,
    /// Permits leased by workers.
    pub lent: u64,
    /// Remaining permits.
    pub remaining: u64,
    /// Ticks until all usage expires without further requests.
    pub ends: Micros,
    /// Requests in flight, of a rule that limits those.
    pub in_flight: Option<u64>,
    /// Whether other callers share this usage, since there was no room for another caller.
    pub is_shared: bool,
}

/// Why a caller's usage cannot be reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unliftable {
    /// Each worker counts separately.
    Local,
    /// The reset would affect other callers.
    Shared,
    /// The usage consists of held requests or requests in flight.
    Line,
    /// The counters do not record callers.
    Quota,
    /// Other workers won every race.
    Busy,
}
