//! What is decided without asking Redis: by a lease, by a refusal that lasts, or not yet.

use super::RedisStore;
use crate::decision::Decision;
use crate::key::Key;
use crate::redis::handle::Handle;
use crate::store::Reservation;
use crate::store::lease::{RECHECK, Refusal};
use crate::store::reservation::By;
use crate::time::Now;

impl RedisStore {
    /// Decides without asking Redis, if that can be done.
    pub(super) fn recall(
        &mut self,
        (key, cost): (Key, u64),
        now: Now,
        is_alone: bool,
        handle: &mut Handle,
    ) -> Option<Reservation> {
        let plan = self.plans.in_hand();
        if self.leases.find(key)?.plan != plan {
            self.change_plan(key, plan, now, handle);
        }
        let lease = self.leases.find(key)?;
        lease.demand.see(now);
        let before = lease.turn(cost, now).unwrap_or_else(|| lease.take_used_up());
        let lease = *lease;
        self.give_back_block(key, before.0, before.1, handle);
        if lease.has(cost, now) {
            return Some(Reservation::new(key, cost, now, Decision::NOW, By::Lease));
        }
        if lease.has(1, now) {
            // What is left is too little for this one, and not to be held back from it.
            self.hand_in(key, now, true, handle);
            return None;
        }
        if is_alone {
            return None;
        }
        let pressing = self.terms.lends && lease.is_pressing(now);
        let refused = |refusal| Some(Reservation::refused(key, cost, now, refusal));
        if let Some(refusal) = lease.refusal.at(cost, now) {
            if pressing && refusal.loan == 0 && refusal.retry <= self.terms.ahead {
                self.ask_for_more(key, now, handle);
            }
            return refused(refusal);
        }
        if !pressing {
            return None;
        }
        if self.terms.gather > 0 && lease.is_crowded(now) {
            self.ask_for_more(key, now, handle);
            return refused(Refusal { retry: self.terms.patience, ..Refusal::default() });
        }
        // More is asked for once for all that wait, and its answer is what they wait for.
        let pause = lease.pause(self.terms.gather, now).map(|(rest, _)| rest);
        if pause.is_none() && !lease.asking {
            self.ask_for_more(key, now, handle);
        }
        let ticks = pause.unwrap_or(RECHECK);
        refused(Refusal { cost, retry: ticks, loan: ticks, left: 0 })
    }
}
