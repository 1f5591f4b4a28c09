//! Shared state while entries and rules are read.

use std::cell::{Cell, RefCell};

use super::actors::ActorSources;
use super::fields::NameIndex;
use super::plans::PlanDraft;
use super::starts::PeriodStarts;
use diana_policy::Zone;

/// Shared state while entries and rules are read.
#[derive(Debug)]
pub struct Context<'c> {
    /// The actors that rules may name.
    pub actors: &'c [ActorSources],
    /// The plans that rules may name.
    pub plans: Vec<(&'c str, Option<PlanDraft<'c>>)>,
    /// The time zone of the document.
    pub zone: Zone,
    /// Where its periods start.
    pub starts: PeriodStarts,
    /// The configured names of rules, each with the number for the next rule of that name.
    pub names: RefCell<NameIndex<'c>>,
    /// Memory in bytes per worker for the quotas of the rules so far.
    pub quotas: Cell<u64>,
}
