//! Reads a caller: from this worker's lease and refusal, or from the gateway.

use super::Shared;
use crate::lease::LeaseDecision;
use crate::refusal::{Reason, Refused};
use crate::reservation::Memo;
use crate::slots::transaction::Transaction;
use crate::{CheckOutcome, Reservation};
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
        self.slots.read(transaction);
        self.merge_own_lease(transaction);
    }

    pub(super) fn merge_own_lease(&mut self, transaction: &mut Transaction) {
        if let Some(lease) = self.leases.find(transaction.key) {
            self.slots.return_lease(transaction, lease.block());
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
                let (reason, retry) = (Reason::Used, Retry::Never);
                let refused = Refused { reason, retry, remaining: Some(0) };
                reservation.outcome = CheckOutcome::Refused(refused);
            }
            return is_nothing;
        }
        let key = account.key;
        let Some(lease) = self.leases.find(key) else { return false };
        if lease.plan != self.plans.current() {
            self.change_plan(key, now);
        }
        match self.leases.decide(key, cost, now) {
            LeaseDecision::Leased => {
                (reservation.outcome, reservation.memo) = (CheckOutcome::NOW, Memo::Lease);
            }
            LeaseDecision::Refused(refused) => reservation.outcome = CheckOutcome::Refused(refused),
            LeaseDecision::Undecided => return false,
        }
        reservation.is_overflow = false;
        true
    }

    /// Decides by the state in the gateway.
    pub(super) fn read_and_check(&mut self, reservation: &mut Reservation) {
        let Reservation { account, cost, now, .. } = *reservation;
        let key = account.key;
        // Its memory is used again: an allocation for each request would cost more than the check.
        let draft = self.draft.take().map(|draft| draft.again(key, now));
        let mut draft = draft.unwrap_or_else(|| Box::new(self.begin(key, now)));
        self.read(&mut draft);
        let decision = self.step(&mut draft, cost);
        draft.decided = Some(decision);
        let longest_delay = self.spec.algorithm.properties().longest_delay;
        reservation.outcome = self.outcome(&draft, decision, longest_delay);
        if let CheckOutcome::Refused(refused) = reservation.outcome
            && matches!(refused.retry, Retry::After(_))
            && let Some(lease) = self.leases.claim(key)
        {
            lease.refuse(cost, refused, !self.spec.may_be_cancelled, (now, now));
        }
        self.number += 1;
        reservation.memo = Memo::Draft(self.number);
        reservation.is_overflow = draft.is_overflow();
        if reservation.refused().is_some() {
            draft.release();
        }
        self.draft = Some(draft);
    }

    /// The outcome of a decision by the state in the gateway.
    pub(super) fn outcome(
        &self,
        draft: &Transaction,
        decision: Decision,
        longest_delay: Micros,
    ) -> CheckOutcome {
        let mut outcome = CheckOutcome::of(decision, longest_delay);
        if let CheckOutcome::Refused(refused) = &mut outcome
            && matches!(refused.retry, Retry::After(_))
        {
            refused.remaining = Some(self.slots.left(draft));
            if draft.outstanding.out() > 0 {
                refused.reason = Reason::Outstanding;
            }
        }
        outcome
    }
}
