//! What is known of a caller: here, by what this worker holds or has written last, or in the gateway.

use super::Shared;
use crate::decision::Decision;
use crate::key::Key;
use crate::store::Reservation;
use crate::store::lease::Refusal;
use crate::store::reservation::By;
use crate::store::slots::missing::Missing;
use crate::store::slots::transaction::Transaction;
use crate::time::{Micros, Now};

impl Shared {
    /// A caller before it is read.
    pub(super) fn begin(&self, key: Key, now: Now) -> Transaction {
        Transaction::new(key, now, self.terms.spec.algorithm.words())
    }

    /// Asks the gateway about the caller, as if this worker had given back what it holds for it.
    pub(super) fn read(&mut self, transaction: &mut Transaction) {
        self.transactions.read(transaction);
        self.take_back_lease(transaction);
    }

    pub(super) fn take_back_lease(&mut self, transaction: &mut Transaction) {
        if let Some(lease) = self.leases.find(transaction.key) {
            self.transactions.give_back(transaction, lease);
        }
    }

    /// What would become of a request: by what is kept of its caller if it may go on by that, and otherwise as the gateway
    /// knows it.
    pub(super) fn foresee(&mut self, transaction: &mut Transaction, cost: u64) -> Decision {
        if self.transactions.read_kept(transaction) {
            self.take_back_lease(transaction);
            if self.step(transaction, cost) == Decision::NOW {
                return Decision::NOW;
            }
        }
        self.read(transaction);
        self.step(transaction, cost)
    }

    /// Permits that a caller has left.
    pub(super) fn left(&mut self, key: Key, now: Now) -> u64 {
        let mut transaction = self.begin(key, now);
        self.read(&mut transaction);
        self.transactions.left(&transaction)
    }

    /// Decides without asking the gateway, if that can be done.
    pub(super) fn recall(&mut self, key: Key, cost: u64, now: Now) -> Option<Reservation> {
        let plan = self.plans.in_hand();
        if self.leases.find(key)?.plan != plan {
            self.change_plan(key, plan, now);
        }
        let lease = self.leases.find(key)?;
        lease.demand.see(now);
        if lease.has(cost, now) {
            return Some(Reservation::new(key, cost, now, Decision::NOW, By::Lease));
        }
        let pause = || {
            let (rest, waits) = lease.pause(self.terms.gather, now)?;
            Some(Refusal { cost, retry: rest, loan: if waits { rest } else { 0 }, left: 0 })
        };
        let refusal = lease.refusal.at(cost, now).or_else(pause)?;
        Some(Reservation::refused(key, cost, now, refusal))
    }

    /// Finds out why the gateway refuses for so long.
    pub(super) fn explain(
        &mut self,
        transaction: &Transaction,
        cost: u64,
        retry: Micros,
    ) -> Refusal {
        let is_crowded =
            self.leases.find(transaction.key).is_some_and(|lease| lease.is_crowded(transaction.at));
        let (retry, loan) = match self.transactions.missing(transaction, cost, retry) {
            Missing::Out(ticks) => (retry, ticks),
            Missing::Gathers(ticks) => (retry, if is_crowded { 0 } else { ticks }),
            Missing::Used(retry) => (retry, 0),
        };
        Refusal { cost, retry, loan, left: self.transactions.left(transaction) }
    }
}
