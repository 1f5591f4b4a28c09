//! Charges the gateway, with retries if other workers charge at the same time.

use super::Shared;
use crate::Reservation;
use crate::reservation::By;
use crate::slots::traffic::one_more;
use diana_policy::decision::{Decision, Retry};
use diana_policy::time::Micros;

impl Shared {
    /// Charges the gateway, with retries if other workers charge at the same time.
    pub(super) fn charge_gateway(
        &mut self,
        reservation: &mut Reservation,
        delay: Micros,
    ) -> Decision {
        let Reservation { cost, reason, left, is_charged, receipt, by, .. } = reservation;
        let By::Gateway(transaction) = by else { return reservation.decision };
        while transaction.may_try() {
            let block = match self.prepare(transaction, *cost, delay) {
                Ok(block) => block,
                Err(Decision::Refuse { retry: Retry::After(ticks) }) => {
                    let refused = self.refusal(transaction, ticks);
                    (*reason, *left) = (refused.reason, refused.remaining);
                    return Decision::Refuse { retry: refused.retry };
                }
                Err(decision) => return decision,
            };
            self.add_arrears(transaction, *cost + block);
            if self.transactions.write(transaction, block) {
                *receipt = self.spec.algorithm.receipt(&transaction.after);
                self.store_block(transaction, block);
                *is_charged = true;
                return Decision::Admit { wait: delay };
            }
            self.read(transaction);
        }
        one_more(&self.traffic.exhausted);
        Decision::retry(1)
    }
}
