//! The interface between the client and the stores and bans of a limiter: the state of Redis,
//! operations to send, and the results of questions.

use super::ledger::Ledgers;
use super::protocol::{Ask, Charge, Question, Refusals};
use super::results::Results;
use super::shard::{Shard, Shards};
use diana_policy::key::Key;
use diana_policy::redis::OnFailure;
use diana_policy::time::{Micros, SECOND};
use diana_store::Account;
use diana_store::backend::Receiver;

/// The maximum number of waiting operations, except renewals. Each lease has at most one of those.
const MOST: usize = 8192;

/// How long a return waits for another call at most.
const LATER: Micros = SECOND * 2 / 5;

/// The maximum number of questions in a rehearsal.
const REHEARSED: usize = 64;

/// An operation for the next batch, which no request waits for.
#[derive(Debug, Clone)]
pub enum Operation {
    /// The rule with this number leases permits for a caller under this plan, and gets the reply.
    Renew(usize, u64, Charge),
    /// Returns permits, without a reply.
    Return(Charge),
    /// Counts refusals towards a ban by the rule with this number. Its bans get the reply. With
    /// zero refusals, only reads the ban.
    Ban(usize, Refusals),
}

impl Operation {
    /// The caller.
    #[must_use]
    pub fn caller(&self) -> Key {
        match self {
            Operation::Renew(.., charge) | Operation::Return(charge) => charge.caller,
            Operation::Ban(_, refusals) => refusals.caller,
        }
    }

    /// The ask to send.
    #[must_use]
    pub fn ask(self) -> Ask {
        let key = self.caller();
        let (question, receiver) = match self {
            Operation::Renew(rule, plan, charge) => {
                (Question::Rule(charge), Some(Receiver::Store(rule, Account { key, plan })))
            }
            Operation::Return(charge) => (Question::Rule(charge), None),
            Operation::Ban(rule, refusals) => {
                (Question::Ban(refusals), Some(Receiver::Bans(rule, key)))
            }
        };
        Ask { delay: 0, questions: vec![question], receiver }
    }
}

/// The state of Redis, and the operations of a limiter's stores and bans. They add these, and the
/// backend has the client send them.
pub struct Outbox {
    /// The configured behaviour while Redis is unavailable.
    pub on_failure: OnFailure,
    /// The number of active gateways, at least one.
    pub gateways: u64,
    /// Whether Redis was ever needed here. The host also runs the filter in places without
    /// requests, where Redis may be unreachable.
    pub in_use: bool,
    /// Whether this worker may send the heartbeat of its gateway: it has rules, and has not been
    /// replaced.
    pub beats: bool,
    /// The number of shards.
    pub shards: Shards,
    /// The unavailable shards, in order.
    pub(super) unavailable: Vec<Shard>,
    /// Whether Redis was unavailable for any worker of the gateway, so that callers may have arrears.
    pub(super) had_outage: bool,
    /// Whether Redis has replied to this worker, so that callers have the hashes of the fleet.
    pub(super) has_replied: bool,
    /// A question about each rule, which charges nothing.
    rehearsal: Vec<Charge>,
    operations: Vec<Operation>,
    /// Returns that leave with the next call, or at an instant at the latest.
    later: Vec<Operation>,
    later_at: Micros,
    /// About how long a reply takes.
    pub trip: Micros,
    /// How long it takes at most.
    pub timeout: Micros,
    /// The results that were not read yet.
    pub results: Results,
    /// The settlements.
    pub ledgers: Ledgers,
}

impl Outbox {
    /// An outbox with all shards available.
    #[must_use]
    pub fn new(on_failure: OnFailure, shards: Shards) -> Outbox {
        Outbox {
            on_failure,
            gateways: 1,
            in_use: false,
            beats: false,
            shards,
            unavailable: Vec::new(),
            had_outage: false,
            has_replied: false,
            rehearsal: Vec::new(),
            operations: Vec::new(),
            later: Vec::new(),
            later_at: 0,
            trip: 0,
            timeout: SECOND,
            results: Results::default(),
            ledgers: Ledgers::default(),
        }
    }

    /// Adds a rule to the rehearsal, by a charge of it.
    pub fn add_rule(&mut self, charge: Charge) {
        self.beats = true;
        if self.rehearsal.len() < REHEARSED {
            let cost = charge.unit_cost;
            self.rehearsal.push(Charge { cost, checks: true, ..charge });
        }
    }

    /// The questions that a shard must decide before it counts as available.
    pub(super) fn rehearsal(&self, shard: Shard) -> impl Iterator<Item = Question> + '_ {
        let caller = self.shards.caller_in(shard);
        self.rehearsal.iter().map(move |charge| Question::Rule(Charge { caller, ..charge.clone() }))
    }

    /// Returns true if a shard is unavailable.
    #[must_use]
    pub fn is_unavailable(&self, shard: Shard) -> bool {
        self.unavailable.binary_search(&shard).is_ok()
    }

    /// The number of unavailable shards.
    #[must_use]
    pub fn unavailable_shards(&self) -> usize {
        self.unavailable.len()
    }

    /// Returns true if a caller's shard is unavailable, so that the gateway enforces its share of
    /// the limit.
    #[must_use]
    pub fn is_degraded(&self, caller: Key) -> bool {
        !self.unavailable.is_empty() && self.is_unavailable(self.shards.of(caller))
    }

    /// Adds an operation for the next batch. Drops it above the maximum, unless it is a renewal:
    /// its permits then stay outstanding or charged until they expire.
    pub fn add(&mut self, operation: Operation) {
        if self.operations.len() < MOST || matches!(operation, Operation::Renew(..)) {
            self.operations.push(operation);
        }
    }

    /// Adds an operation that may wait for the next call for a while. As [`Outbox::add`] otherwise.
    pub fn add_later(&mut self, operation: Operation, now: Micros) {
        if self.later.is_empty() {
            self.later_at = now.saturating_add(LATER);
        }
        if self.later.len() < MOST {
            self.later.push(operation);
        }
    }

    /// Removes at most `most` operations, oldest first.
    pub fn take(&mut self, most: usize) -> Vec<Operation> {
        self.gather();
        let rest = self.operations.split_off(most.min(self.operations.len()));
        std::mem::replace(&mut self.operations, rest)
    }

    /// All operations are taken now.
    fn gather(&mut self) {
        let operations = std::mem::take(&mut self.operations);
        self.operations = std::mem::take(&mut self.later);
        self.operations.extend(operations);
    }

    /// Removes all operations for unavailable shards.
    pub(super) fn take_unavailable(&mut self) -> Vec<Operation> {
        self.gather();
        let (unavailable, shards) = (&self.unavailable, self.shards);
        let is_unavailable =
            |it: &mut Operation| unavailable.binary_search(&shards.of(it.caller())).is_ok();
        self.operations.extract_if(.., is_unavailable).collect()
    }

    /// Removes all renewals.
    pub(super) fn take_renewals(&mut self) -> Vec<Operation> {
        let is_renewal = |it: &mut Operation| matches!(it, Operation::Renew(..));
        self.operations.extract_if(.., is_renewal).collect()
    }

    /// Returns true if there are operations or settlements to send.
    #[must_use]
    pub fn has_operations(&self) -> bool {
        !self.later.is_empty() || self.is_due()
    }

    /// The instant at which operations or settlements are due.
    #[must_use]
    pub(super) fn due(&self, now: Micros) -> Option<Micros> {
        let later = (!self.later.is_empty()).then_some(self.later_at);
        if self.is_due() { Some(now) } else { later.map(|at| at.max(now)) }
    }

    fn is_due(&self) -> bool {
        !self.operations.is_empty() || self.ledgers.is_ready(&self.unavailable)
    }
}
