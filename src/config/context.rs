//! What all entries and rules share while they are read.

use std::cell::{Cell, RefCell};

use super::actors::Known;
use super::fields::Names;
use super::plans::Draft;
use diana_policy::Zone;

/// What all entries share while they are read.
#[derive(Debug)]
pub struct Context<'c> {
    /// The actors that rules may name.
    pub actors: &'c [Known],
    /// The plans that rules may name.
    pub plans: Vec<(&'c str, Option<Draft<'c>>)>,
    /// Where a day begins.
    pub zone: Zone,
    /// The names that rules were given, each with the number that would follow it.
    pub names: RefCell<Names<'c>>,
    /// Bytes that the quotas of the rules so far take in a worker.
    pub quotas: Cell<u64>,
}
