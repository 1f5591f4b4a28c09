//! The check of one request by one store, and its charge.

use super::Account;
use super::in_flight_slots::HoldingsDraft;
use super::refusal::{Reason, Refused};
use super::row::Row;
use super::slots::arrears::Arrears;
use super::slots::transaction::Transaction;
use diana_policy::decision::Decision;
use diana_policy::time::{Micros, Now};

/// The check of one request by one store. The limiter creates it; the store decides and charges it.
/// It may be dropped before it is charged.
pub struct Reservation {
    /// The caller.
    pub account: Account,
    /// Permits of the request.
    pub cost: u64,
    /// When it is checked.
    pub now: Now,
    /// Whether a refusal is only reported.
    pub is_shadow: bool,
    /// Whether other stores may still refuse the request after an authority has charged it.
    pub is_tentative: bool,
    /// Whether the authority is unavailable, so that the gateway decides from now on.
    pub is_degraded: bool,
    /// The decision.
    pub decision: Decision,
    /// Why it is refused, if it is.
    pub reason: Reason,
    /// Remaining permits, if the store knew them at the decision.
    pub left: Option<u64>,
    /// The longest delay, in ticks, for which another rule may hold the request.
    pub longest_delay: Micros,
    /// Whether an overflow bucket decided, because there was no room for another caller.
    pub is_overflow: bool,
    /// Whether it is charged, and the charge is not cancelled.
    pub is_charged: bool,
    /// The receipt for [`Store::settle`](super::Store::settle), once it is charged.
    pub receipt: u64,
    /// What decided.
    pub by: By,
}

/// What decides a request.
#[allow(
    clippy::large_enum_variant,
    reason = "an allocation for each transaction at the gateway costs more than what is moved"
)]
pub enum By {
    /// It is not checked yet.
    Unchecked,
    /// A remembered refusal, a ban or its absence, or the configuration.
    Known,
    /// A block that this worker leased.
    Lease,
    /// A caller's state in this worker.
    Row(Row),
    /// A caller's state in the gateway.
    Gateway(Transaction),
    /// A caller's in-flight slots in the gateway.
    InFlightSlots(HoldingsDraft),
    /// An account's counters of a daily quota, with the number of the filter's charges at the
    /// check.
    Account(u64),
    /// A reply of the authority outside of the gateway. Until then the request is pending.
    Reply(Awaited),
    /// No store: the authority is unavailable, and the rule admits or refuses all requests.
    Unavailable,
}

/// The state of a question to the authority outside of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// The question is not added to the outbox yet.
    Unasked,
    /// It is asked under this number, with these arrears.
    Asked(usize, Option<Arrears>),
    /// It was lost, or the caller is known by another key from now on: the request must be decided
    /// again.
    Lost,
    /// The authority has admitted the request under this rule, and has charged it if
    /// [`Reservation::is_charged`].
    Admitted {
        /// The request's turn, on the monotonic clock.
        until: Micros,
        /// The authority's term of the charge, for a tentative charge that is cancelled.
        term: u64,
    },
}

impl Reservation {
    /// A request of `cost` permits that is not checked yet.
    #[inline(always)]
    pub fn new(account: Account, cost: u64, now: Now) -> Reservation {
        Reservation {
            account,
            cost,
            now,
            is_shadow: false,
            is_tentative: false,
            is_degraded: false,
            decision: Decision::NOW,
            reason: Reason::Used,
            left: None,
            longest_delay: Micros::MAX,
            is_overflow: false,
            is_charged: false,
            receipt: 0,
            by: By::Unchecked,
        }
    }

    /// Stores a decision, which replaces an earlier one.
    #[inline]
    pub fn decide(&mut self, decision: Decision, by: By) {
        (self.decision, self.by) = (decision, by);
        (self.reason, self.left) = (Reason::Used, None);
        (self.is_overflow, self.is_charged) = (false, false);
        self.longest_delay = Micros::MAX;
    }

    /// Refuses the request.
    pub fn refuse(&mut self, refused: Refused) {
        self.decide(Decision::Refuse { retry: refused.retry }, By::Known);
        (self.reason, self.left) = (refused.reason, refused.remaining);
    }

    /// The refusal, if the request is refused.
    #[must_use]
    pub fn refused(&self) -> Option<Refused> {
        let Decision::Refuse { retry } = self.decision else { return None };
        Some(Refused { reason: self.reason, retry, remaining: self.left })
    }

    /// Returns true if it is refused while other workers hold leases of the caller, which may be
    /// returned.
    #[must_use]
    pub fn is_outstanding(&self) -> bool {
        self.refused().is_some_and(|refused| refused.reason == Reason::Outstanding)
    }

    /// Returns true if an authority must reply before a decision.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self.by, By::Reply(Awaited::Unasked | Awaited::Asked(..)))
    }

    /// Returns true if the authority outside of the gateway has admitted the request.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        matches!(self.by, By::Reply(Awaited::Admitted { .. }))
    }

    /// Returns true if a store counts the request.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        !matches!(self.by, By::Unavailable)
    }
}
