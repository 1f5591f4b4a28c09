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

/// An order of an operator about one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Reports its usage.
    Look,
    /// Resets its usage.
    Reset,
    /// Bans it for this many ticks.
    Ban(Micros),
    /// Ends its ban.
    Unban,
}

impl Order {
    /// The length of the ban that it sets; 0 if it ends the ban; `None` if it does not change bans.
    #[must_use]
    pub fn sets(self) -> Option<Micros> {
        match self {
            Order::Look | Order::Reset => None,
            Order::Ban(length) => Some(length),
            Order::Unban => Some(0),
        }
    }
}

/// A caller's usage of its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Used permits, without reservations and leases.
    pub used: u64,
    /// Reserved permits of requests in progress, if the algorithm counts them separately.
    pub reserved: u64,
    /// Permits leased by workers.
    pub leased: u64,
    /// Remaining permits.
    pub remaining: u64,
    /// Ticks until all usage expires without further requests.
    pub ends: Micros,
    /// Requests in flight, of a rule that limits those.
    pub in_flight: Option<u64>,
    /// Whether other callers share this usage, since there was no room for another caller.
    pub is_shared: bool,
    /// The remaining ticks of the caller's ban, of a rule that bans.
    pub ban: Option<Micros>,
}

/// Why an order of an operator is not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderError {
    /// The rule has no bans.
    NoBans,
    /// Another gateway made the key, or this one under an earlier secret.
    Foreign,
    /// There is no room for one more ban.
    NoRoom,
    /// The authority is unavailable, and was not asked.
    Unavailable,
    /// The authority did not reply in time: the order may have been carried out.
    Unanswered,
    /// The question was lost, or the caller has another key now: the order must be given again.
    Lost,
    /// Each worker counts separately, and does not know the usage of the others.
    Local,
    /// The reset would affect other callers.
    Shared,
    /// The usage consists of held requests or requests in flight.
    InUse,
    /// The counters do not record callers.
    Quota,
    /// Other workers won every race.
    Busy,
}
