//! Counts of accesses to shared data, for the metrics.

use std::cell::Cell;

/// Counts since the last flush, shared by all stores of a configuration.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Values written.
    pub writes: Cell<u64>,
    /// Compare-and-swaps lost to another worker. Each was retried.
    pub conflicts: Cell<u64>,
    /// Requests refused after too many lost compare-and-swaps in a row.
    pub exhausted: Cell<u64>,
    /// Corrupt values under Diana's keys. They count as empty and are replaced. The metric is
    /// called `foreign`.
    pub corrupt: Cell<u64>,
}

/// Increments a counter.
pub fn one_more(count: &Cell<u64>) {
    count.set(count.get() + 1);
}
