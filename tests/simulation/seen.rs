//! What a simulation showed.

use diana::time::Micros;

use super::fullest::Extremes;

#[derive(Debug, Clone)]
pub struct Seen {
    pub requests: u64,
    pub admitted: u64,
    /// The share of what one counter without leases would have admitted.
    pub used: f64,
    pub extremes: Extremes,
    /// Calls to Redis and asks that it decided, per second; the share of calls that came to nothing.
    pub calls: f64,
    pub asks: f64,
    pub failed: f64,
    /// Processors of Redis that were busy on average.
    pub processors: f64,
    /// The share of all decisions that waited for Redis, and what half of those waits, 99 of 100, and
    /// all of them did not exceed, in ticks.
    pub waiting: f64,
    pub waits: [Micros; 3],
    /// The share of requests that came while their gateway went by itself, and when the last one came.
    pub alone: f64,
    pub last_alone: Option<Micros>,
}
