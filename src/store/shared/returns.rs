//! Returns of blocks, charges and queue positions to the gateway; and the arrears of this gateway
//! at the authority of the fleet, where it counts its share of a limit.

use super::Shared;
use crate::Account;
use crate::lease::Block;
use crate::leases::Returned;
use crate::slots::arrears::{Arrears, OpenArrears};
use crate::slots::transaction::{Home, Transaction};
use diana_policy::key::Key;
use diana_policy::settlement::Settlement;
use diana_policy::time::Now;

impl Shared {
    /// Returns blocks that have ended, or all of them, some hundreds at a time.
    pub(super) fn return_blocks(&mut self, now: Now, all: bool) {
        for Returned { key, plan, block, left } in self.leases.remove_ended(now, all) {
            self.use_plan(plan);
            self.return_block(key, (block, left), now);
        }
    }

    pub(super) fn return_block(&mut self, key: Key, block: (Block, u64), now: Now) {
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
            if self.spec.is_share {
                transaction.arrears.remove(charge);
            }
            if self.slots.write_returned(transaction) {
                return self.leases.forget(transaction.key);
            }
        }
        let settlement = Settlement { receipt, since, reserved: cost, used: 0 };
        _ = self.settle_at(&settlement, transaction);
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
            let before = self.slots.charged(&transaction.state, transaction);
            self.slots.settle(transaction, settlement);
            let charged = self.slots.charged(&transaction.state, transaction);
            self.settle_arrears(transaction, settlement.used, before.saturating_sub(charged));
            if self.slots.write_returned(transaction) {
                self.leases.forget(transaction.key);
                return true;
            }
        }
        false
    }
}

/// Arrears.
impl Shared {
    /// The caller's arrears for a question to the authority.
    pub fn send_arrears(&mut self, account: Account, now: Now) -> Option<Arrears> {
        self.use_plan(account.plan);
        let mut transaction = self.begin(account.key, now);
        while transaction.may_try() {
            let (arrears, is_new) = self.read_arrears(&mut transaction).send()?;
            if !is_new || self.slots.write_returned(&mut transaction) {
                return Some(arrears);
            }
        }
        None
    }

    /// Ends arrears that the authority has charged.
    pub fn confirm_arrears(&mut self, account: Account, charged: Arrears, now: Now) {
        self.use_plan(account.plan);
        let mut transaction = self.begin(account.key, now);
        while transaction.may_try() {
            if !self.read_arrears(&mut transaction).confirm(charged)
                || self.slots.write_returned(&mut transaction)
            {
                return;
            }
        }
    }

    /// Reads the caller's arrears. A caller in an overflow bucket has none.
    fn read_arrears<'t>(&mut self, transaction: &'t mut Transaction) -> &'t mut OpenArrears {
        transaction.arrears = OpenArrears::default();
        self.slots.read_known(transaction);
        &mut transaction.arrears
    }

    /// Adds a charge to the arrears. Permits of a rule that settles are added once their usage is
    /// known.
    pub(super) fn add_arrears(&self, transaction: &mut Transaction, permits: u64) {
        if self.spec.is_share && !self.spec.settles {
            transaction.arrears.add(permits, transaction.now.mono);
        }
    }

    /// Adds the usage of a settled charge to the arrears, or removes what came `back` of a cancelled
    /// one: a charge that has expired is in none.
    fn settle_arrears(&self, transaction: &mut Transaction, used: u64, back: u64) {
        match self.spec.settles {
            _ if !self.spec.is_share => {}
            true => transaction.arrears.add(used, transaction.now.mono),
            false => transaction.arrears.remove(back),
        }
    }
}
