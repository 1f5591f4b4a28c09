//! The check of one request by one store, and its charge.

use super::Account;
use super::refusal::Refused;
use diana_policy::decision::{Decision, Retry};
use diana_policy::time::{Micros, Now};

/// The check of one request by one store. The limiter creates it; the store decides and charges it.
/// It may be dropped before it is charged.
#[derive(Debug)]
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
    /// Whether an overflow bucket decided, because there was no room for another caller.
    pub is_overflow: bool,
    /// The store that decides, and charges it.
    pub by: Decider,
    /// The outcome.
    pub outcome: CheckOutcome,
    /// The receipt for [`Store::settle`](super::Store::settle), while it is charged.
    pub receipt: Option<u64>,
    /// What its store remembers. Nothing else reads it.
    pub memo: Memo,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It is not checked yet.
    Unchecked,
    /// An authority must reply first.
    Pending,
    /// The request may proceed.
    Admitted {
        /// Ticks until its turn; zero is at once.
        wait: Micros,
        /// The longest delay, in ticks, for which another rule may hold it.
        longest_delay: Micros,
    },
    /// The request is refused.
    Refused(Refused),
    /// A question to the authority was lost, or the caller is known by another key from now on: the
    /// request must be decided again.
    Lost,
}

/// The store that decides a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decider {
    /// The gateway, or one of its workers: by a state, a lease or a remembered refusal.
    Gateway,
    /// The authority outside of the gateway, by its reply.
    Authority,
    /// The gateway's share of the limit, since the authority is unavailable.
    Share,
    /// No store: the authority is unavailable, and the rule admits or refuses all requests.
    Unavailable,
}

/// What a store remembers of a check until its charge ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memo {
    /// Nothing.
    Empty,
    /// The number of the store's draft: the state as it was read, and the state after the charge. A
    /// store has the draft of its latest check only, and repeats an earlier check before its
    /// charge.
    Draft(u64),
    /// Its slot is taken, and this number of slots is free.
    Slots(u64),
    /// Leased permits decide.
    Lease,
    /// The authority has admitted the request under this rule.
    Granted {
        /// The request's turn, on the monotonic clock.
        until: Micros,
        /// The authority's term of the charge, for a tentative charge that is cancelled.
        term: u64,
        /// Remaining permits.
        left: u64,
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
            is_overflow: false,
            by: Decider::Gateway,
            outcome: CheckOutcome::Unchecked,
            receipt: None,
            memo: Memo::Empty,
        }
    }

    /// Returns true if it is charged, and the charge is not cancelled.
    #[must_use]
    #[inline]
    pub fn is_charged(&self) -> bool {
        self.receipt.is_some()
    }

    /// Ticks until the turn of an admitted request; zero for another one.
    #[must_use]
    #[inline]
    pub fn wait(&self) -> Micros {
        if let CheckOutcome::Admitted { wait, .. } = self.outcome { wait } else { 0 }
    }

    /// Sets the turn of an admitted request.
    pub fn wait_until(&mut self, turn: Micros) {
        if let CheckOutcome::Admitted { wait, .. } = &mut self.outcome {
            *wait = turn.saturating_sub(self.now.mono);
        }
    }

    /// Returns true if the request is admitted.
    #[must_use]
    #[inline]
    pub fn is_admitted(&self) -> bool {
        matches!(self.outcome, CheckOutcome::Admitted { .. })
    }

    /// The refusal, if the request is refused.
    #[must_use]
    #[inline]
    pub fn refused(&self) -> Option<Refused> {
        if let CheckOutcome::Refused(refused) = self.outcome { Some(refused) } else { None }
    }

    /// Returns true if an authority must reply before a decision.
    #[must_use]
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.outcome == CheckOutcome::Pending
    }

    /// Returns true if the authority outside of the gateway has admitted the request.
    #[must_use]
    #[inline]
    pub fn is_granted(&self) -> bool {
        self.by == Decider::Authority && self.is_admitted()
    }

    /// Returns true if the authority is unavailable, so that the gateway decides from now on.
    #[must_use]
    #[inline]
    pub fn is_degraded(&self) -> bool {
        matches!(self.by, Decider::Share | Decider::Unavailable)
    }
}

impl CheckOutcome {
    /// Admitted at once; other rules may hold the request for any time.
    pub const NOW: CheckOutcome = CheckOutcome::Admitted { wait: 0, longest_delay: Micros::MAX };

    /// Refused permanently: the cost exceeds the limit.
    pub const NEVER: CheckOutcome = CheckOutcome::Refused(Refused::used(Retry::Never));

    /// The decision of an algorithm.
    #[must_use]
    #[inline]
    pub fn of(decision: Decision, longest_delay: Micros) -> CheckOutcome {
        match decision {
            Decision::Admit { wait } => CheckOutcome::Admitted { wait, longest_delay },
            Decision::Refuse { retry } => CheckOutcome::Refused(Refused::used(retry)),
        }
    }
}
