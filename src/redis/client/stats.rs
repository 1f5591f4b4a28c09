//! Statistics of the connection to Redis.

/// Events since the last flush.
#[derive(Debug, Default)]
pub struct Stats {
    /// Calls sent, and the asks in them.
    pub trips: u64,
    /// See `trips`.
    pub asks: u64,
    /// Corrupt values in Redis. The metric is called `foreign`.
    pub corrupt: u64,
    /// Replies that report gateways with another number of shards.
    pub apart: u64,
    /// Settlements dropped for lack of room while Redis was unavailable.
    pub unsettled: u64,
    /// Failures by name, with their counts.
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
