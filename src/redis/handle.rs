//! What rules that are counted in Redis go by, and what they want done there.

use super::ledger::Ledgers;
use super::part::{Part, Parts};
use super::protocol::{Charge, Question, Refusals};
use super::target::Target;
use diana_policy::key::Key;
use diana_policy::redis::OnFailure;

/// Most operations that wait. There is no more than one for each lease that wants something.
const MOST: usize = 8192;

/// Something to be done with the next batch, for which no request waits.
#[derive(Debug, Clone)]
pub enum Operation {
    /// The rule with this number wants permits for a caller by this plan, and takes the reply.
    Renew(usize, u32, Charge),
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
            Operation::Renew(rule, ..) => Some(Target::Rule(*rule)),
            Operation::GiveBack(_) => None,
            Operation::Ban(rule, _) => Some(Target::Ban(*rule)),
        }
    }

    /// By which plan of its rule permits are wanted.
    #[must_use]
    pub fn plan(&self) -> u32 {
        if let Operation::Renew(_, plan, _) = self { *plan } else { 0 }
    }

    /// Whom it is about.
    #[must_use]
    pub fn caller(&self) -> Key {
        match self {
            Operation::Renew(.., charge) | Operation::GiveBack(charge) => charge.caller,
            Operation::Ban(_, refusals) => refusals.caller,
        }
    }

    /// What Redis is asked.
    #[must_use]
    pub fn question(self) -> Question {
        match self {
            Operation::Renew(.., charge) | Operation::GiveBack(charge) => Question::Rule(charge),
            Operation::Ban(_, refusals) => Question::Ban(refusals),
        }
    }
}

/// What the client knows of Redis, and what the stores and the bans of a limiter want done there. They add
/// to the list, and whoever calls them has the client send it.
pub struct Handle {
    /// What becomes of the rules while the gateway is alone.
    pub on_failure: OnFailure,
    /// Active gateways as last known, at least one.
    pub gateways: u64,
    /// Whether Redis was ever wanted here. The host also runs the filter where no request comes, and
    /// from where Redis cannot be reached.
    pub in_use: bool,
    /// Into how many parts its keys fall.
    pub parts: Parts,
    /// Those that cannot be relied upon, in order.
    pub(super) away: Vec<Part>,
    operations: Vec<Operation>,
    /// What is to be settled.
    pub ledgers: Ledgers,
}

impl Handle {
    /// With a Redis of so many parts that can be relied upon.
    #[must_use]
    pub fn new(on_failure: OnFailure, parts: Parts) -> Handle {
        let (away, operations) = (Vec::new(), Vec::new());
        let ledgers = Ledgers::default();
        Handle { on_failure, gateways: 1, in_use: false, parts, away, operations, ledgers }
    }

    /// Whether a part cannot be relied upon.
    #[must_use]
    pub fn is_away(&self, part: Part) -> bool {
        self.away.binary_search(&part).is_ok()
    }

    /// How many parts cannot be relied upon.
    #[must_use]
    pub fn away(&self) -> usize {
        self.away.len()
    }

    /// Whether the part cannot be relied upon where the values of a caller lie, so that the gateway counts it alone.
    #[must_use]
    pub fn is_alone(&self, caller: Key) -> bool {
        !self.away.is_empty() && self.is_away(self.parts.of(caller))
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

    /// All operations that concern parts which cannot be relied upon.
    pub(super) fn take_away(&mut self) -> Vec<Operation> {
        let (away, parts) = (&self.away, self.parts);
        let is_away = |it: &mut Operation| away.binary_search(&parts.of(it.caller())).is_ok();
        self.operations.extract_if(.., is_away).collect()
    }

    /// Whether something is to be done with the next batch.
    #[must_use]
    pub fn has_operations(&self) -> bool {
        !self.operations.is_empty() || self.ledgers.is_ready(&self.away)
    }
}
