//! Decisions without a call to Redis: by a lease, or by a remembered refusal.

use super::RedisStore;
use diana_store::lease::LeaseDecision;
use diana_store::reservation::Memo;
use diana_store::{CheckOutcome, Reservation};

impl RedisStore {
    /// Decides a request without a call to Redis. Returns false if that is impossible.
    pub(super) fn recall(&mut self, reservation: &mut Reservation, is_degraded: bool) -> bool {
        let Reservation { account, cost, now, .. } = *reservation;
        let (key, plan) = (account.key, self.plans.current());
        let Some(lease) = self.leases.find(key) else { return false };
        if lease.plan != plan {
            self.change_plan(key, plan);
        }
        match self.leases.decide(key, cost, now) {
            LeaseDecision::Leased => {
                (reservation.outcome, reservation.memo) = (CheckOutcome::NOW, Memo::Lease);
            }
            LeaseDecision::Refused(refused) if !is_degraded => {
                reservation.outcome = CheckOutcome::Refused(refused);
            }
            LeaseDecision::Refused(_) | LeaseDecision::Undecided => {
                // Returns a block that is spent or too small for this request, so that the request
                // can use its permits.
                let (block, left) = self.leases.take(key);
                self.return_block(key, block, left);
                return false;
            }
        }
        true
    }
}
