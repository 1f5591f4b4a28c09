//! What is told of the way to Redis.

/// What happened since the last flush.
#[derive(Debug, Default)]
pub struct Stats {
    /// Batches sent, and the asks in them.
    pub trips: u64,
    /// See `trips`.
    pub asks: u64,
    /// Values in Redis that were not ours. The metric is called `foreign`.
    pub corrupt: u64,
    /// Answers by which other gateways have the keys fall into another number of parts.
    pub apart: u64,
    /// Charges that were to be settled and did not fit while Redis was away.
    pub unsettled: u64,
    /// Failures by their names, and how many of each.
    pub failures: Vec<(&'static str, u64)>,
    /// Lines for the log.
    pub news: Vec<String>,
}

impl Stats {
    pub(super) fn fail(&mut self, name: &'static str) {
        match self.failures.iter_mut().find(|(known, _)| *known == name) {
            Some((_, amount)) => *amount += 1,
            None => self.failures.push((name, 1)),
        }
    }
}
