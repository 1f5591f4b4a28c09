//! The measurements of a simulation.

use diana_policy::time::Micros;

use super::fullest::Extremes;

#[derive(Debug, Clone)]
pub struct Seen {
    /// Used permits, relative to a single counter without leases.
    pub used: f64,
    pub extremes: Extremes,
    /// Requests that were refused although they fitted, since leases of their caller were
    /// outstanding.
    pub in_error: u64,
    /// Calls to Redis and decided questions per second, and the share of failed calls.
    pub calls: f64,
    pub asks: f64,
    pub failed: f64,
    /// Calls of the script per second. One call to a proxy has one per shard.
    pub scripts: f64,
    /// The average number of busy processors of Redis, and the utilisation of the busiest one.
    pub processors: f64,
    pub busiest: f64,
    /// The share of decisions that waited for Redis, and percentiles 50, 99 and 100 of these waits
    /// in ticks.
    pub waiting: f64,
    pub waits: [Micros; 3],
    /// The share of requests in degraded mode, and the arrival of the last one.
    pub alone: f64,
    pub last_alone: Option<Micros>,
}
