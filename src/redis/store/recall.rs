//! Decisions without a call to Redis: by a lease, or by a remembered refusal.

use super::RedisStore;
use diana_policy::decision::Decision;
use diana_policy::time::Now;
pub use diana_store::lease::LeaseDecision;
pub use diana_store::reservation::By;
use diana_store::{Account, Reservation};

impl RedisStore {
    /// Decides a request without a call to Redis, if possible.
    pub(super) fn recall(
        &mut self,
        (account, cost): (Account, u64),
        now: Now,
        is_alone: bool,
    ) -> Option<Reservation> {
        let (key, plan) = (account.key, self.plans.in_hand());
        if self.leases.find(key)?.plan != plan {
            self.change_plan(key, plan);
        }
        match self.leases.decide(key, cost, now) {
            LeaseDecision::Leased => {
                Some(Reservation::new(account, cost, now, Decision::NOW, By::Lease))
            }
            LeaseDecision::Refused(refusal) if !is_alone => {
                Some(Reservation::refused(account, cost, now, refusal))
            }
            LeaseDecision::Refused(_) | LeaseDecision::Nothing => {
                // Returns a block that is spent or too small for this request, so that the request
                // can use its permits.
                let (block, left) = self.leases.take(key);
                self.give_back_block(key, block, left);
                None
            }
        }
    }
}
