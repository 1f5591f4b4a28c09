//! The questions and operations of a rule for Redis.

use super::RedisStore;
use crate::handle::Operation;
use crate::protocol::{Back, Charge};
use diana_policy::key::Key;
use diana_policy::time::Now;
use diana_store::lease::Block;
use diana_store::leases::Returned;

impl RedisStore {
    /// The charge for a request, with a lease for the next ones if the caller is busy. `tentative`
    /// if it may be refused elsewhere.
    pub fn question(
        &mut self,
        (key, cost): (Key, u64),
        now: Now,
        shadow: bool,
        tentative: bool,
    ) -> Charge {
        let checks = self.terms.spec.checks;
        let mut charge = Charge { cost, shadow, tentative, checks, ..self.nothing(key) };
        if self.terms.lends
            && let Some(lease) = self.leases.claim(key)
            && !lease.asking
        {
            charge.want = lease.wanted(cost, now);
            lease.asking = true;
        }
        charge
    }

    /// Requests the next block before a request must wait for it.
    pub(super) fn renew_early(&mut self, key: Key, now: Now) {
        let unit_cost = self.terms.spec.unit_cost;
        let Some(lease) = self.leases.find(key) else { return };
        if lease.asking || !lease.runs_low(now) {
            return;
        }
        let want = lease.wanted(unit_cost, now);
        if want > 0 {
            lease.asking = true;
            let charge = Charge { want, ..self.nothing(key) };
            self.handle.borrow_mut().add(Operation::Renew(
                self.number,
                self.plans.in_hand(),
                charge,
            ));
        }
    }

    /// Returns the permits of a request that were charged under `receipt`, in `term` if tentative.
    pub fn give_back(&mut self, key: Key, (receipt, term): (u64, u64), permits: u64) {
        if self.is_held {
            self.free(key, receipt);
            return;
        }
        // Daily quotas cannot undo a charge, and a check made none.
        if self.terms.spec.daily.is_none() && !self.terms.spec.checks {
            let back = Back::Cost { receipt, term, permits };
            self.send_back(key, back);
        }
    }

    /// Switches a caller to another plan: its lease and refusal are no longer valid.
    #[inline(never)]
    pub(super) fn change_plan(&mut self, key: Key, plan: u32) {
        let before = self.leases.find(key).map_or(plan, |lease| lease.plan);
        let (block, left) = self.leases.take(key);
        // The block is returned under the plan that charged it.
        self.judge_by(before);
        self.give_back_block(key, block, left);
        self.judge_by(plan);
        self.leases.begin_anew(key);
    }

    /// Returns a block with `left` unspent permits.
    pub(super) fn give_back_block(&self, key: Key, block: Block, left: u64) {
        // Also a spent block, since it counts as outstanding until Redis gets the return.
        if block.permits == 0 {
            return;
        }
        let Block { permits, term, receipt } = block;
        let back = Back::Block { receipt, term, block: permits, left };
        self.send_back(key, back);
    }

    /// Returns blocks that have ended, or all of them, some hundreds at a time.
    pub(super) fn hand_in_blocks(&mut self, now: Now, all: bool) {
        for Returned { key, plan, block, left } in self.leases.take_over(now, all) {
            self.judge_by(plan);
            self.give_back_block(key, block, left);
        }
    }

    /// Frees an in-flight slot.
    pub(super) fn free(&self, key: Key, receipt: u64) {
        let mut handle = self.handle.borrow_mut();
        let part = handle.parts.of(key);
        handle.ledgers.free(part, self.nothing(key), receipt);
    }

    fn send_back(&self, key: Key, back: Back) {
        self.handle.borrow_mut().add(Operation::GiveBack(Charge { back, ..self.nothing(key) }));
    }

    pub(super) fn nothing(&self, caller: Key) -> Charge {
        Charge {
            fingerprint: self.terms.spec.fingerprint,
            caller,
            numbers: self.terms.numbers,
            cost: 0,
            unit_cost: self.terms.spec.unit_cost,
            want: 0,
            shadow: false,
            tentative: false,
            checks: false,
            keys: self.keys,
            back: Back::default(),
            counted: self.terms.spec.keeps_used.then_some(0),
        }
    }
}
