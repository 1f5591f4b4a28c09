//! What a store found out about one request.

use super::lease::Refusal;
use super::places::Draft;
use super::row::Row;
use super::slots::transaction::Transaction;
use diana_policy::decision::Decision;
use diana_policy::key::Key;
use diana_policy::time::Now;

/// What [`Store::check`](super::Store::check) found out about a request, which is charged with it or
/// dropped. To drop it leaves everything as it was.
pub struct Reservation {
    /// The caller.
    pub key: Key,
    /// Permits that it takes.
    pub cost: u64,
    /// When it was checked.
    pub now: Now,
    /// The decision.
    pub decision: Decision,
    /// Why it is refused, if that is known here.
    pub refusal: Refusal,
    /// Whether a bucket that newcomers share decided.
    pub is_overflow: bool,
    /// Whether it was charged, and the charge was not taken back.
    pub is_charged: bool,
    /// What [`Store::settle`](super::Store::settle) needs, once it is charged.
    pub receipt: u64,
    /// Whether the gateway's part of a limit decided in place of the fleet.
    pub is_alone: bool,
    /// What decided.
    pub by: By,
}

/// What decides about a request.
#[allow(
    clippy::large_enum_variant,
    reason = "an allocation for each transaction at the gateway costs more than what is moved"
)]
pub enum By {
    /// A refusal that still lasts, or the configuration.
    Known,
    /// A block of permits that this worker holds.
    Lease,
    /// A caller's state in this worker.
    Row(Row),
    /// A caller's state in the gateway.
    Gateway(Transaction),
    /// Its places in flight there.
    Places(Draft),
    /// An account's counters, which had been charged so many times.
    Account(u64),
    /// Redis, which has to be asked.
    Redis,
    /// No store: Redis is unavailable, and the rule admits or refuses all requests.
    Nobody,
}

impl Reservation {
    /// Of a request that was decided about like this.
    #[inline]
    pub fn new(key: Key, cost: u64, now: Now, decision: Decision, by: By) -> Reservation {
        Reservation {
            key,
            cost,
            now,
            decision,
            refusal: Refusal::default(),
            is_overflow: false,
            is_charged: false,
            receipt: 0,
            is_alone: false,
            by,
        }
    }

    /// Of a request that is refused for a reason that is known.
    pub fn refused(key: Key, cost: u64, now: Now, refusal: Refusal) -> Reservation {
        let decision = Decision::retry(refusal.retry);
        Reservation { refusal, ..Reservation::new(key, cost, now, decision, By::Known) }
    }

    /// The decision.
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Whether it is refused while other workers hold leases of the caller, which may come back.
    #[must_use]
    pub fn is_outstanding(&self) -> bool {
        self.refusal.is_outstanding
    }

    /// Whether a bucket that newcomers share decided, since there was no room for one more caller.
    #[must_use]
    pub fn is_overflow(&self) -> bool {
        self.is_overflow
    }

    /// Whether it was charged, and the charge was not taken back.
    #[must_use]
    pub fn is_charged(&self) -> bool {
        self.is_charged
    }

    /// The receipt of its charge.
    #[must_use]
    pub fn receipt(&self) -> u64 {
        self.receipt
    }

    /// Whether the fleet has to be asked before anything can be decided.
    #[must_use]
    pub fn asks(&self) -> bool {
        matches!(self.by, By::Redis)
    }

    /// Whether anybody counts the request.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        !matches!(self.by, By::Nobody)
    }
}
