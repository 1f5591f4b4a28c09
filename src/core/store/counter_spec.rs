//! What a store counts, and by what: all that it is told of its rule.

use std::rc::Rc;

use crate::algorithm::{Algorithm, Can, Entry, keeping_used};
use crate::bloom::Shape;
use crate::policy::Quota;

/// What a store counts, and by what.
#[derive(Debug, Clone)]
pub struct CounterSpec {
    /// What its algorithm is known by.
    pub entry: &'static Entry,
    /// How much it allows.
    pub quota: Quota,
    /// The algorithm, built from both.
    pub algorithm: Rc<dyn Algorithm>,
    /// Permits of which what a request takes is a multiple; where nothing is leased, the most that it takes.
    pub unit_cost: u64,
    /// Tells the rule apart from all others of its namespace; equal across configurations as long
    /// as it is the same rule.
    pub fingerprint: u64,
    /// How many live callers room is made for.
    pub keys: usize,
    /// The filter in which accounts are counted by the day, if they are.
    pub daily: Option<Shape>,
    /// Whether requests may be under other rules, too, so that a charge may be taken back.
    pub beside: bool,
    /// Whether what is charged is settled when a request ends.
    pub settles: bool,
    /// Whether requests are only checked when they come, and charged when it is known what they used.
    pub checks: bool,
    /// Whether what was used is kept beside what is reserved.
    pub keeps_used: bool,
}

impl CounterSpec {
    /// Counts by another quota.
    #[must_use]
    pub fn with(&self, quota: Quota) -> CounterSpec {
        let built = (self.entry.build)(&quota).ok();
        let algorithm = match built {
            Some(algorithm) if self.keeps_used => keeping_used(self.entry, &quota, algorithm),
            Some(algorithm) => algorithm,
            None => Rc::clone(&self.algorithm),
        };
        CounterSpec { algorithm, quota, ..self.clone() }
    }

    /// What the algorithm can do.
    #[must_use]
    pub fn can(&self) -> Can {
        (self.entry.can)(&self.quota)
    }
}
