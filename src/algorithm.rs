//! The rate-limiting algorithms. A new one is one file in `algorithm/` and one line in
//! [`REGISTRY`]; the configuration, its messages and the laws cover it from there.

mod debt;
pub mod fixed_window;
pub mod leaky_bucket;
pub mod sliding_window;
pub mod token_bucket;

use std::fmt::Debug;
use std::rc::Rc;

use crate::decision::Decision;
use crate::quota::Quota;
use crate::time::{Micros, Now};

/// A pure step over a few machine words.
///
/// State is a slice of [`Algorithm::words`] 64-bit words; all zero is "no state", the state of a
/// caller who was never seen. No method reads a clock, panics, or depends on anything but its
/// arguments, so a store may run a step as often as its own atomicity needs.
pub trait Algorithm: Debug {
    /// How many words the state takes.
    fn words(&self) -> usize;

    /// Decides about a request of `cost` permits at `now`, given the state `old`.
    ///
    /// When it admits, it writes the charged state into `new`; when it refuses, `new` is untouched.
    /// Both slices have [`Algorithm::words`] words.
    fn step(&self, old: &[u64], now: Now, cost: u64, new: &mut [u64]) -> Decision;

    /// Permits left at `now`; never more than could be admitted at once.
    fn remaining(&self, state: &[u64], now: Now) -> u64;

    /// The monotonic instant from which `state` decides like no state at all, as seen at `now`;
    /// at or before `now` if it has run out already.
    fn expires(&self, state: &[u64], now: Now) -> Micros;

    /// What `ratelimit-policy` tells clients: quota in permits and window in ticks.
    fn policy(&self) -> (u64, Micros);
}

/// An optional numeric key of a rule that an algorithm understands.
#[derive(Debug)]
pub struct Key {
    /// Its name in the configuration, which is also the name of the field in [`Quota`].
    pub name: &'static str,
    /// Smallest value allowed.
    pub min: u64,
    /// Largest value allowed.
    pub max: u64,
}

/// A combination of values that means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The key to blame.
    pub key: &'static str,
    /// What is wrong and what is allowed, as the rest of a sentence.
    pub message: String,
}

impl Conflict {
    /// A request that costs more than a unit allows.
    fn cost_above_rpu(quota: &Quota) -> Conflict {
        let message = format!(
            "found `{}`, which never fits; allowed: at most `rpu`, {}",
            quota.cost, quota.rpu
        );
        Conflict { key: "cost", message }
    }
}

/// An algorithm, or every combination of its numbers that means nothing.
pub type Built = Result<Rc<dyn Algorithm>, Vec<Conflict>>;

/// One algorithm as the configuration knows it.
#[derive(Debug)]
pub struct Entry {
    /// Short name, shown in generated rule names, headers and logs.
    pub short: &'static str,
    /// Long name, as the source documents write it.
    pub long: &'static str,
    /// Optional keys beyond those that every rule has.
    pub keys: &'static [Key],
    /// Builds the algorithm, or names every combination that means nothing.
    pub build: fn(&Quota) -> Built,
}

/// All algorithms. The first is the default.
pub const REGISTRY: &[Entry] =
    &[token_bucket::ENTRY, fixed_window::ENTRY, sliding_window::ENTRY, leaky_bucket::ENTRY];
