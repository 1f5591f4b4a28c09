//! What all workers know of the configuration centre: who asks it, and what came of it.
//!
//! It is one small value of shared data, looked at often. The document itself is another one, read
//! only when its version is news.

use diana_policy::port::SharedData;
use diana_policy::time::Micros;
use diana_policy::words;

/// What is known of the configuration centre and its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// Who asks.
    pub leader: u64,
    /// When the leader was configured.
    pub born: Micros,
    /// How the leader asks.
    pub settings: u64,
    /// How long the leader is taken to live.
    pub until: Micros,
    /// When the centre is to be asked next.
    pub due: Micros,
    /// The last good document; 0 is none.
    pub version: u64,
    /// What is wrong; 0 is nothing.
    pub trouble: u64,
    /// The last document that had problems, so that they are told only once.
    pub rejected: u64,
}

impl Head {
    /// What is known, and the number to write under.
    pub fn read(data: &dyn SharedData, key: &str) -> (Head, Option<u32>) {
        let (words, number) = words::read(data, key);
        let [leader, born, settings, until, due, version, trouble, rejected] = words;
        (Head { leader, born, settings, until, due, version, trouble, rejected }, number)
    }

    /// Writes it, if nobody else did since it was read. Whether it was written.
    pub fn write(&self, data: &dyn SharedData, key: &str, number: Option<u32>) -> bool {
        let Head { leader, born, settings, until, due, version, trouble, rejected } = *self;
        words::write(
            [leader, born, settings, until, due, version, trouble, rejected],
            data,
            key,
            number,
        )
    }
}
