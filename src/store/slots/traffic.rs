//! What was done with shared data, for the metrics.

use std::cell::Cell;

/// Counts since the last flush, common to all stores of a configuration.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Values written.
    pub writes: Cell<u64>,
    /// Compare-and-swaps lost to another worker, each of which was tried again.
    pub conflicts: Cell<u64>,
    /// Requests refused because too many in a row were lost.
    pub exhausted: Cell<u64>,
    /// Values under our keys that are not ours; they count as empty and are replaced. The metric is called
    /// `foreign`.
    pub corrupt: Cell<u64>,
}

/// Counts one more.
pub fn one_more(count: &Cell<u64>) {
    count.set(count.get() + 1);
}
