//! What goes back to the gateway: blocks, charges, and places in a line.

use super::Shared;
use crate::Store;
use crate::lease::Block;
use crate::leases::Returned;
use crate::slots::transaction::{Home, Transaction};
use diana_policy::key::Key;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};

impl Shared {
    /// Gives back the blocks that are over, or all of them, at most some hundreds at a time.
    pub(super) fn hand_in_blocks(&mut self, now: Now, all: bool) {
        for Returned { key, plan, block, left } in self.leases.take_over(now, all) {
            self.judge_by(plan);
            self.hand_in(key, (block, left), now);
        }
    }

    /// A caller has another plan from now on: what is known of it by the one before is not true any more. By the new one it
    /// has drained since it was last charged.
    #[inline(never)]
    pub(super) fn change_plan(&mut self, key: Key, now: Now) {
        let block = self.leases.take(key);
        self.hand_in(key, block, now);
        self.leases.begin_anew(key);
    }

    fn hand_in(&mut self, key: Key, block: (Block, u64), now: Now) {
        let mut transaction = self.begin(key, now);
        while block.0.permits > 0 && transaction.may_try() {
            self.transactions.read(&mut transaction);
            let is_counted = self.transactions.give_back(&mut transaction, block);
            if !is_counted || self.transactions.keep(&mut transaction) {
                break;
            }
        }
    }

    /// Undoes a charge that the gateway was asked for, and gives back the block that came with it.
    pub(super) fn undo_charge(&mut self, cost: u64, transaction: &mut Transaction) {
        let receipt = self.spec.algorithm.receipt(&transaction.after);
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
