//! What a simulation showed.

use diana_policy::time::Micros;

use super::fullest::Extremes;

#[derive(Debug, Clone)]
pub struct Seen {
    /// Permits used: the share of what one counter without leases would have admitted.
    pub used: f64,
    pub extremes: Extremes,
    /// Requests that were refused although they fitted, since leases of their caller were outstanding.
    pub in_error: u64,
    /// Calls to Redis and asks that it decided, per second; the share of calls that came to nothing.
    pub calls: f64,
    pub asks: f64,
    pub failed: f64,
    /// Calls of the script, per second: of one call to a proxy there is one for each part.
    pub scripts: f64,
    /// Processors of Redis that were busy on average; and how much of its own that of one Redis was which had most to do.
    pub processors: f64,
    pub busiest: f64,
    /// The share of all decisions that waited for an answer of Redis; percentiles 50, 99 and 100 of these waits, in ticks.
    pub waiting: f64,
    pub waits: [Micros; 3],
    /// The share of requests that came while their gateway went by itself, and when the last one came.
    pub alone: f64,
    pub last_alone: Option<Micros>,
}
