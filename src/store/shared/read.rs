//! Reads a caller: from this worker's lease and refusal, or from the gateway.

use super::Shared;
use crate::lease::{LeaseDecision, LeaseRefusal};
use crate::reservation::By;
use crate::slots::transaction::Transaction;
use crate::{Account, Reservation};
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
        self.take_back_lease(transaction);
    }

    pub(super) fn take_back_lease(&mut self, transaction: &mut Transaction) {
        if let Some(lease) = self.leases.find(transaction.key) {
            self.transactions.give_back(transaction, lease.block());
        }
    }

    /// The maximum cost of an admitted request.
    fn most(&self) -> u64 {
        self.spec.algorithm.properties().most_at_once
    }

    /// The result of a check without a read from the gateway, if possible.
    pub(super) fn known(&mut self, account: Account, cost: u64, now: Now) -> Option<Reservation> {
        if cost > self.most() {
            // The gateway is read only for the remaining permits, which the response reports. A
            // limit of zero has none.
            let is_nothing = self.most() == 0;
            return is_nothing
                .then(|| Reservation::new(account, cost, now, Decision::NEVER, By::Known));
        }
        self.recall(account, cost, now)
    }

    /// The result of a check by the gateway.
    pub(super) fn ask(&mut self, account: Account, cost: u64, now: Now) -> Reservation {
        let key = account.key;
        let mut transaction = self.begin(key, now);
        self.read(&mut transaction);
        let decision = self.step(&mut transaction, cost);
        transaction.decided = Some(decision);
        let mut refusal = LeaseRefusal::default();
        if let Decision::Refuse { retry: Retry::After(ticks) } = decision {
            refusal = self.refusal(&transaction, cost, ticks);
            if let Some(lease) = self.leases.claim(key) {
                lease.refuse(refusal, !self.spec.beside, now, now);
            }
        }
        let is_overflow = transaction.is_overflow();
        let longest_delay = self.spec.algorithm.properties().longest_delay;
        let found = Reservation::new(account, cost, now, decision, By::Gateway(transaction));
        Reservation { refusal, is_overflow, longest_delay, ..found }
    }

    /// Decides without a read from the gateway, if possible.
    pub(super) fn recall(&mut self, account: Account, cost: u64, now: Now) -> Option<Reservation> {
        let key = account.key;
        if self.leases.find(key)?.plan != self.plans.in_hand() {
            self.change_plan(key, now);
        }
        match self.leases.decide(key, cost, now) {
            LeaseDecision::Leased => {
                Some(Reservation::new(account, cost, now, Decision::NOW, By::Lease))
            }
            LeaseDecision::Refused(refusal) => {
                Some(Reservation::refused(account, cost, now, refusal))
            }
            LeaseDecision::Nothing => None,
        }
    }

    /// A refusal by the gateway, for `retry` ticks.
    pub(super) fn refusal(
        &mut self,
        transaction: &Transaction,
        cost: u64,
        retry: Micros,
    ) -> LeaseRefusal {
        let is_outstanding = transaction.outstanding.out() > 0;
        LeaseRefusal { cost, retry, is_outstanding, left: self.transactions.left(transaction) }
    }
}
