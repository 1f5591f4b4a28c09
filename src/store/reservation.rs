//! The result of a store's check of one request.

use super::Account;
use super::lease::LeaseRefusal;
use super::places::HoldingsDraft;
use super::row::Row;
use super::slots::transaction::Transaction;
use diana_policy::decision::Decision;
use diana_policy::time::{Micros, Now};

/// The result of [`Store::check`](super::Store::check), to be charged or dropped. A drop changes
/// nothing.
pub struct Reservation {
    /// The caller.
    pub account: Account,
    /// Permits of the request.
    pub cost: u64,
    /// When it was checked.
    pub now: Now,
    /// The decision.
    pub decision: Decision,
    /// The refusal, if its reason is known here.
    pub refusal: LeaseRefusal,
    /// The longest delay, in ticks, for which another rule may hold the request.
    pub longest_delay: Micros,
    /// Whether an overflow bucket decided.
    pub is_overflow: bool,
    /// Whether it is charged, and the charge is not cancelled.
    pub is_charged: bool,
    /// The receipt for [`Store::settle`](super::Store::settle), once it is charged.
    pub receipt: u64,
    /// Whether the gateway's share of the limit decided instead of Redis.
    pub is_alone: bool,
    /// What decided.
    pub by: By,
}

/// What decides a request.
#[allow(
    clippy::large_enum_variant,
    reason = "an allocation for each transaction at the gateway costs more than what is moved"
)]
pub enum By {
    /// A refusal that still applies, or the configuration.
    Known,
    /// A block that this worker leased.
    Lease,
    /// A caller's state in this worker.
    Row(Row),
    /// A caller's state in the gateway.
    Gateway(Transaction),
    /// A caller's in-flight slots in the gateway.
    Places(HoldingsDraft),
    /// An account's counters, with the number of charges at the check.
    Account(u64),
    /// Redis, which must be queried.
    Redis,
    /// No store: Redis is unavailable, and the rule admits or refuses all requests.
    Nobody,
}

impl Reservation {
    /// A reservation with this decision.
    #[inline]
    pub fn new(account: Account, cost: u64, now: Now, decision: Decision, by: By) -> Reservation {
        Reservation {
            account,
            cost,
            now,
            decision,
            refusal: LeaseRefusal::default(),
            longest_delay: Micros::MAX,
            is_overflow: false,
            is_charged: false,
            receipt: 0,
            is_alone: false,
            by,
        }
    }

    /// A refused reservation, with its reason.
    pub fn refused(account: Account, cost: u64, now: Now, refusal: LeaseRefusal) -> Reservation {
        let decision = Decision::retry(refusal.retry);
        Reservation { refusal, ..Reservation::new(account, cost, now, decision, By::Known) }
    }

    /// The decision.
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Returns true if it is refused while other workers hold leases of the caller, which may be
    /// returned.
    #[must_use]
    pub fn is_outstanding(&self) -> bool {
        self.refusal.is_outstanding
    }

    /// Returns true if an overflow bucket decided, because there was no room for another caller.
    #[must_use]
    pub fn is_overflow(&self) -> bool {
        self.is_overflow
    }

    /// Returns true if it is charged, and the charge is not cancelled.
    #[must_use]
    pub fn is_charged(&self) -> bool {
        self.is_charged
    }

    /// The receipt of its charge.
    #[must_use]
    pub fn receipt(&self) -> u64 {
        self.receipt
    }

    /// Returns true if Redis must be queried before a decision.
    #[must_use]
    pub fn asks(&self) -> bool {
        matches!(self.by, By::Redis)
    }

    /// Returns true if a store counts the request.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        !matches!(self.by, By::Nobody)
    }
}
