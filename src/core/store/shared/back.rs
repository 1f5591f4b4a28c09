//! What goes back to the gateway: blocks, charges, and places in a line.

use super::Shared;
use crate::key::Key;
use crate::settlement::Settlement;
use crate::store::Store;
use crate::store::slots::transaction::{Home, Transaction};
use crate::time::{Micros, Now};

impl Shared {
    /// Gives back all blocks that are idle, or all of them. Whether any is still out.
    pub(super) fn hand_in_blocks(&mut self, now: Now, all: bool) -> bool {
        let (keys, any) = self.leases.idle(now, all);
        for key in keys {
            if let Some(lease) = self.leases.find(key) {
                let plan = lease.plan;
                self.judge_by(plan);
            }
            self.hand_in(key, now);
        }
        any
    }

    /// A caller has another plan from now on: what is known of it by the one before is not true any more. By the new one it
    /// has drained since it was last charged.
    #[inline(never)]
    pub(super) fn change_plan(&mut self, key: Key, plan: u32, now: Now) {
        if self.leases.find(key).is_some_and(|lease| lease.is_out()) {
            self.hand_in(key, now);
        }
        self.leases.find(key).into_iter().for_each(|lease| lease.begin_anew(plan));
    }

    fn hand_in(&mut self, key: Key, now: Now) {
        let mut transaction = self.begin(key, now);
        while transaction.may_try() {
            self.transactions.read(&mut transaction);
            let lease = self.leases.find(key);
            let counted =
                lease.is_some_and(|lease| self.transactions.give_back(&mut transaction, lease));
            if !counted || self.transactions.keep(&mut transaction) {
                break;
            }
        }
        self.leases.forget(key);
    }

    /// Undoes a charge that the gateway was asked for, and gives back the block that came with it.
    pub(super) fn undo_charge(&mut self, cost: u64, transaction: &mut Transaction) {
        let receipt = self.terms.spec.algorithm.receipt(&transaction.after);
        let since = transaction.now.mono;
        while transaction.may_try() && self.transactions.is_untouched(transaction) {
            if self.transactions.keep(transaction) {
                return self.leases.forget(transaction.key);
            }
        }
        _ = self.take_back((receipt, cost), since, transaction);
    }

    /// Takes back the permits of one request that were charged under `receipt` at `since`, and what is
    /// left of a block.
    pub(super) fn take_back(
        &mut self,
        (receipt, permits): (u64, u64),
        since: Micros,
        transaction: &mut Transaction,
    ) -> bool {
        let settlement = Settlement { receipt, since, reserved: permits, used: 0 };
        self.settle_at(&settlement, transaction)
    }

    /// Settles the charge of one request, and takes back what is left of a block. Whether nobody was faster again and
    /// again.
    pub(super) fn settle_at(
        &mut self,
        settlement: &Settlement,
        transaction: &mut Transaction,
    ) -> bool {
        while transaction.may_try() {
            self.read(transaction);
            let is_void = self.lifts && !self.terms.spec.keeps_used;
            if is_void && self.transactions.is_lifted_since(transaction, settlement.since) {
                return true;
            }
            if transaction.home == Home::New && settlement.debt() == 0 {
                return true;
            }
            self.transactions.settle(transaction, settlement);
            if self.transactions.keep(transaction) {
                self.leases.forget(transaction.key);
                return true;
            }
        }
        false
    }
}
