//! Reads a caller: from this worker's lease and refusal, or from the gateway.

use super::Shared;
use crate::Reservation;
use crate::lease::LeaseDecision;
use crate::refusal::{Reason, Refused};
use crate::reservation::By;
use crate::slots::transaction::Transaction;
use diana_policy::decision::{Decision, Retry};
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};

impl Shared {
    /// A transaction before its first read.
    pub(super) fn begin(&self, key: Key, now: Now) -> Transaction {
        Transaction::new(key, now, self.spec.algorithm.properties().words)
    }

    /// Reads the caller from the gateway, as if this worker had returned its lease.
    pub(super) fn read(&mut self, transaction: &mut Transaction) {
        self.transactions.read(transaction);
        self.merge_own_lease(transaction);
    }

    pub(super) fn merge_own_lease(&mut self, transaction: &mut Transaction) {
        if let Some(lease) = self.leases.find(transaction.key) {
            self.transactions.return_lease(transaction, lease.block());
        }
    }

    /// The maximum cost of an admitted request.
    fn most(&self) -> u64 {
        self.spec.algorithm.properties().most_at_once
    }

    /// Decides without a read from the gateway. Returns false if that is impossible.
    pub(super) fn recall(&mut self, reservation: &mut Reservation) -> bool {
        let Reservation { account, cost, now, .. } = *reservation;
        if cost > self.most() {
            // The gateway is read only for the remaining permits, which the response reports. A
            // limit of zero has none.
            let is_nothing = self.most() == 0;
            if is_nothing {
                reservation.decide(Decision::NEVER, By::Known);
            }
            return is_nothing;
        }
        let key = account.key;
        let Some(lease) = self.leases.find(key) else { return false };
        if lease.plan != self.plans.current() {
            self.change_plan(key, now);
        }
        match self.leases.decide(key, cost, now) {
            LeaseDecision::Leased => reservation.decide(Decision::NOW, By::Lease),
            LeaseDecision::Refused(refused) => reservation.refuse(refused),
            LeaseDecision::Undecided => return false,
        }
        true
    }

    /// Decides by the state in the gateway.
    pub(super) fn read_and_check(&mut self, reservation: &mut Reservation) {
        let Reservation { account, cost, now, .. } = *reservation;
        let key = account.key;
        let mut transaction = self.begin(key, now);
        self.read(&mut transaction);
        let decision = self.step(&mut transaction, cost);
        transaction.decided = Some(decision);
        let is_overflow = transaction.is_overflow();
        let mut reason = Reason::Used;
        let mut left = None;
        if let Decision::Refuse { retry: Retry::After(ticks) } = decision {
            let refused = self.refusal(&transaction, ticks);
            (reason, left) = (refused.reason, refused.remaining);
            if let Some(lease) = self.leases.claim(key) {
                lease.refuse(cost, refused, !self.spec.may_be_cancelled, (now, now));
            }
        }
        reservation.decide(decision, By::Gateway(transaction));
        (reservation.reason, reservation.left) = (reason, left);
        reservation.is_overflow = is_overflow;
        reservation.longest_delay = self.spec.algorithm.properties().longest_delay;
    }

    /// A refusal by the gateway, for `retry` ticks.
    pub(super) fn refusal(&mut self, transaction: &Transaction, retry: Micros) -> Refused {
        let is_outstanding = transaction.outstanding.out() > 0;
        Refused {
            reason: if is_outstanding { Reason::Outstanding } else { Reason::Used },
            retry: Retry::After(retry),
            remaining: Some(self.transactions.left(transaction)),
        }
    }
}
