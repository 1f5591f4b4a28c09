//! Charges the gateway, with retries if other workers charge at the same time.

use super::Shared;
use crate::slots::traffic::one_more;
use crate::slots::transaction::Transaction;
use crate::{CheckOutcome, Reservation};
use diana_policy::decision::Decision;
use diana_policy::time::Micros;

impl Shared {
    /// Charges the gateway, with retries if other workers charge at the same time.
    pub(super) fn charge_gateway(&mut self, reservation: &mut Reservation, delay: Micros) {
        let CheckOutcome::Admitted { longest_delay, .. } = reservation.outcome else { return };
        let Some(mut draft) = self.draft.take() else { return };
        match self.charge_draft(&mut draft, reservation.cost, delay) {
            Ok(receipt) => {
                reservation.receipt = Some(receipt);
                draft.release();
            }
            Err(decision) => {
                reservation.outcome = self.outcome(&draft, decision, longest_delay);
            }
        }
        self.draft = Some(draft);
    }

    /// Returns the receipt, or the decision that there is no charge for.
    fn charge_draft(
        &mut self,
        draft: &mut Transaction,
        cost: u64,
        delay: Micros,
    ) -> Result<u64, Decision> {
        while draft.may_try() {
            let block = self.prepare(draft, cost, delay)?;
            self.add_arrears(draft, cost + block);
            if self.slots.write(draft, block) {
                self.store_block(draft, block);
                return Ok(self.spec.algorithm.receipt(&draft.after));
            }
            self.read(draft);
        }
        one_more(&self.traffic.exhausted);
        Err(Decision::retry(1))
    }
}
