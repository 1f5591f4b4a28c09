//! The state of polling that all workers share.
//!
//! It is one small value of shared data, read often. The document is another value, read only when
//! its version changes.

use diana_policy::port::SharedData;
use diana_policy::time::Micros;
use diana_policy::words;

/// The state of the configuration server and its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// The worker that polls.
    pub leader: u64,
    /// When the leader was configured.
    pub configured_at: Micros,
    /// The settings of the leader.
    pub settings: u64,
    /// The end of the leader's lease.
    pub until: Micros,
    /// The time of the next poll.
    pub due: Micros,
    /// The version of the last valid document. 0 is none.
    pub version: u64,
    /// A hash of the current problem. 0 is none.
    pub problem: u64,
    /// The version of the newest document, if it is invalid: its problems are logged once.
    pub rejected: u64,
}

impl Head {
    /// The state, and its version for a write.
    pub fn read(data: &dyn SharedData, key: &str) -> (Head, Option<u32>) {
        let (words, number) = words::read(data, key);
        let [leader, configured_at, settings, until, due, version, problem, rejected] = words;
        (Head { leader, configured_at, settings, until, due, version, problem, rejected }, number)
    }

    /// Writes the state if it is unchanged since it was read. Returns true if it was written.
    pub fn write(&self, data: &dyn SharedData, key: &str, number: Option<u32>) -> bool {
        let Head { leader, configured_at, settings, until, due, version, problem, rejected } =
            *self;
        words::write(
            [leader, configured_at, settings, until, due, version, problem, rejected],
            data,
            key,
            number,
        )
    }
}
