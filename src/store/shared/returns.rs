//! Returns of blocks, charges and queue positions to the gateway.

use super::Shared;
use crate::lease::Block;
use crate::leases::Returned;
use crate::slots::transaction::{Home, Transaction};
use diana_policy::key::Key;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};

impl Shared {
    /// Returns blocks that have ended, or all of them, some hundreds at a time.
    pub(super) fn return_blocks(&mut self, now: Now, all: bool) {
        for Returned { key, plan, block, left } in self.leases.remove_ended(now, all) {
            self.use_plan(plan);
            self.return_block(key, (block, left), now);
        }
    }

    /// Switches a caller to another plan: its lease and refusal are no longer valid. Under the new
    /// plan, its state has drained since its latest charge.
    #[inline(never)]
    pub(super) fn change_plan(&mut self, key: Key, now: Now) {
        let block = self.leases.take(key);
        self.return_block(key, block, now);
        self.leases.change_plan(key);
    }

    fn return_block(&mut self, key: Key, block: (Block, u64), now: Now) {
        let mut transaction = self.begin(key, now);
        while block.0.permits > 0 && transaction.may_try() {
            self.slots.read(&mut transaction);
            let is_counted = self.slots.return_lease(&mut transaction, block);
            if !is_counted || self.slots.write_returned(&mut transaction) {
                break;
            }
        }
    }

    /// Cancels a charge of a request, and returns the block that was leased with it.
    pub(super) fn undo_charge(&mut self, cost: u64, transaction: &mut Transaction) {
        let receipt = self.spec.algorithm.receipt(&transaction.after);
        let since = transaction.now.mono;
        let charged = self.slots.charged(&transaction.after, transaction);
        let charge = charged.saturating_sub(self.slots.charged(&transaction.state, transaction));
        while transaction.may_try() && self.slots.is_untouched(transaction) {
            transaction.arrears.remove(charge);
            if self.slots.write_returned(transaction) {
                return self.leases.forget(transaction.key);
            }
        }
        _ = self.cancel_charge((receipt, cost), since, transaction);
    }

    /// Cancels the charge of one request, made under `receipt` at `since`, and returns the rest of
    /// a block.
    pub(super) fn cancel_charge(
        &mut self,
        (receipt, permits): (u64, u64),
        since: Micros,
        transaction: &mut Transaction,
    ) -> bool {
        let settlement = Settlement { receipt, since, reserved: permits, used: 0 };
        self.settle_at(&settlement, transaction)
    }

    /// Settles the charge of one request, and returns the rest of a block. Returns false if other
    /// workers won every race.
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
            self.settle_arrears(transaction, settlement);
            self.slots.settle(transaction, settlement);
            if self.slots.write_returned(transaction) {
                self.leases.forget(transaction.key);
                return true;
            }
        }
        false
    }
}
