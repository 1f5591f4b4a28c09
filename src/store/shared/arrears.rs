//! The arrears of this gateway at the authority of the fleet, where it counts its share of a limit.

use super::Shared;
use crate::Account;
use crate::slots::arrears::{Arrears, OpenArrears};
use crate::slots::transaction::Transaction;
use diana_policy::settlement::Settlement;
use diana_policy::time::Now;

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

    /// Adds a charge to the arrears. Permits of a rule that settles are added once their usage is known.
    pub(super) fn add_arrears(&self, transaction: &mut Transaction, permits: u64) {
        if self.spec.is_share && !self.spec.settles {
            transaction.arrears.add(permits, transaction.now.mono);
        }
    }

    /// Adds the usage of a settled charge to the arrears, or removes a cancelled charge.
    pub(super) fn settle_arrears(&self, transaction: &mut Transaction, settlement: &Settlement) {
        match self.spec.settles {
            true if self.spec.is_share => {
                transaction.arrears.add(settlement.used, transaction.now.mono);
            }
            true => {}
            false => transaction.arrears.remove(settlement.back()),
        }
    }
}
