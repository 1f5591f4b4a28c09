//! A charge of the gateway, which others charge meanwhile.

use super::Shared;
use crate::decision::{Decision, Retry};
use crate::key::Key;
use crate::store::Reservation;
use crate::store::lease::Lease;
use crate::store::reservation::By;
use crate::store::slots::traffic::one_more;
use crate::time::{Micros, Now};

impl Shared {
    /// Charges a request by what this worker holds of its caller, as most are. Whether it holds enough.
    #[inline]
    pub(super) fn spend(&mut self, key: Key, cost: u64, now: Now) -> bool {
        let plan = self.plans.in_hand();
        let lease = self.leases.find(key);
        let has = |lease: &&mut Lease| lease.plan == plan && lease.has(cost, now);
        let Some(lease) = lease.filter(has) else { return false };
        lease.demand.see(now);
        lease.spend(cost, now);
        true
    }

    /// Charges the gateway, whatever others charge it meanwhile.
    pub(super) fn charge_gateway(
        &mut self,
        reservation: &mut Reservation,
        delay: Micros,
    ) -> Decision {
        let Reservation { cost, refusal, is_charged, by, .. } = reservation;
        let By::Gateway(transaction) = by else { return reservation.decision };
        while transaction.may_try() {
            let block = match self.prepare(transaction, *cost, delay) {
                Ok(block) => block,
                Err(Decision::Refuse { retry: Retry::After(ticks) }) => {
                    *refusal = self.explain(transaction, *cost, ticks);
                    return Decision::retry(refusal.retry);
                }
                Err(decision) => return decision,
            };
            if self.transactions.write(transaction, block) {
                self.remember(transaction, block);
                *is_charged = true;
                return Decision::Admit { wait: delay };
            }
            self.read(transaction);
        }
        one_more(&self.traffic.exhausted);
        Decision::retry(1)
    }
}
