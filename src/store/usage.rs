//! What a caller has used, for whoever asks.

use diana_policy::time::Micros;

/// How much of its limit a caller has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Permits that are used, and neither reserved nor lent.
    pub used: u64,
    /// Permits of requests under way that may not use them, where that is told apart.
    pub reserved: u64,
    /// Permits that workers hold for the requests that come next.
    pub lent: u64,
    /// Permits left.
    pub remaining: u64,
    /// Ticks until all of it has run out, if nobody comes.
    pub ends: Micros,
    /// Requests in flight, of a rule that limits those.
    pub in_flight: Option<u64>,
    /// Whether others share what it uses, since there was no room for one more caller.
    pub is_shared: bool,
}

/// Why what a caller used is not lifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unliftable {
    /// Each worker counts for itself.
    Local,
    /// What others used would be lifted, too.
    Shared,
    /// What there is are requests that wait for their turn, or are in flight.
    Line,
    /// Nobody can tell whose a count is.
    Quota,
    /// Others were faster, again and again.
    Busy,
}
