//! What is known of a caller: here, by what this worker holds or has written last, or in the gateway.

use super::Shared;
use crate::decision::{Decision, Retry};
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

    /// What is known of a request without asking the gateway.
    pub(super) fn known(&mut self, key: Key, cost: u64, now: Now) -> Option<Reservation> {
        if cost > self.terms.most {
            // The answer reports the remaining permits, so they are read. A limit of zero has none.
            let is_nothing = self.terms.most == 0;
            return is_nothing
                .then(|| Reservation::new(key, cost, now, Decision::NEVER, By::Known));
        }
        self.recall(key, cost, now)
    }

    /// What the gateway says of a request.
    pub(super) fn ask(&mut self, key: Key, cost: u64, now: Now) -> Reservation {
        let mut transaction = self.begin(key, now);
        self.read(&mut transaction);
        let mut decision = self.step(&mut transaction, cost);
        transaction.decided = Some(decision);
        let mut refusal = Refusal::default();
        if let Decision::Refuse { retry: Retry::After(ticks) } = decision {
            refusal = self.explain(&transaction, cost, ticks);
            decision = Decision::retry(refusal.retry);
            match self.leases.claim(key) {
                Some(lease) if self.terms.spec.beside => lease.refuse_shortly(refusal, now),
                Some(lease) => lease.refuse(refusal, now, now),
                None => {}
            }
        }
        let is_overflow = transaction.is_overflow();
        let by = By::Gateway(transaction);
        Reservation { refusal, is_overflow, ..Reservation::new(key, cost, now, decision, by) }
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
