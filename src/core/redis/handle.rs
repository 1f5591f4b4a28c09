//! What rules that are counted in Redis go by, and what they want done there.

use super::part::Part;
use super::protocol::{Charge, Question, Refusals};
use super::target::Target;
use crate::policy::redis::OnFailure;

/// Most operations that wait. There is no more than one for each lease that wants something.
const MOST: usize = 8192;

/// Something to be done with the next batch, for which no request waits.
#[derive(Debug, Clone)]
pub enum Operation {
    /// The rule with this number wants permits for a caller, and takes the reply.
    Renew(usize, Charge),
    /// Permits come back, and nobody is told.
    GiveBack(Charge),
    /// Refusals count towards a ban by the rule with this number, whose bans take the reply; with none it
    /// only looks.
    Ban(usize, Refusals),
}

impl Operation {
    /// Who takes the reply, if anybody does.
    #[must_use]
    pub fn target(&self) -> Option<Target> {
        match self {
            Operation::Renew(rule, _) => Some(Target::Rule(*rule)),
            Operation::GiveBack(_) => None,
            Operation::Ban(rule, _) => Some(Target::Ban(*rule)),
        }
    }

    /// What Redis is asked.
    #[must_use]
    pub fn question(self) -> Question {
        match self {
            Operation::Renew(_, charge) | Operation::GiveBack(charge) => Question::Rule(charge),
            Operation::Ban(_, refusals) => Question::Ban(refusals),
        }
    }
}

/// What the client knows of Redis, and what the stores and the bans of an engine want done there. They add
/// to the list, and whoever calls them has the client send it.
pub struct Handle {
    /// What becomes of the rules while the gateway is alone.
    pub on_failure: OnFailure,
    /// Active gateways as last known, at least one.
    pub gateways: u64,
    /// Whether Redis was ever wanted here. The host also runs the filter where no request comes, and
    /// from where Redis cannot be reached.
    pub in_use: bool,
    /// Whether Redis cannot be relied upon.
    pub(super) alone: bool,
    operations: Vec<Operation>,
}

impl Handle {
    /// With a Redis that can be relied upon.
    #[must_use]
    pub fn new(on_failure: OnFailure) -> Handle {
        Handle { on_failure, gateways: 1, in_use: false, alone: false, operations: Vec::new() }
    }

    /// Whether a part cannot be relied upon, so that the gateway counts alone what lies there.
    #[must_use]
    pub fn is_alone(&self, part: Part) -> bool {
        match part {
            Part::Whole => self.alone,
        }
    }

    /// Has something done with the next batch. Where too much waits, only what asks for permits still goes.
    pub fn add(&mut self, operation: Operation) {
        if self.operations.len() < MOST || matches!(operation, Operation::Renew(..)) {
            self.operations.push(operation);
        }
    }

    /// At most `most` operations, the oldest first.
    pub fn take(&mut self, most: usize) -> Vec<Operation> {
        let rest = self.operations.split_off(most.min(self.operations.len()));
        std::mem::replace(&mut self.operations, rest)
    }

    /// Whether there are any.
    #[must_use]
    pub fn has_operations(&self) -> bool {
        !self.operations.is_empty()
    }
}
