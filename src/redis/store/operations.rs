//! The questions and operations of a rule for Redis.

use super::RedisStore;
use crate::outbox::Operation;
use crate::protocol::{Charge, Effect};
use diana_policy::key::Key;
use diana_policy::time::Now;
use diana_store::lease::Block;
use diana_store::leases::Returned;
use diana_store::slots::arrears::Arrears;

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
        let checks = self.parameters.spec.checks;
        let arrears = self.arrears(key, now);
        let mut charge =
            Charge { cost, shadow, tentative, checks, arrears, ..self.empty_charge(key) };
        if self.parameters.leases
            && let Some(lease) = self.leases.claim(key)
            && !lease.is_asking
        {
            charge.want = lease.permits_to_lease(cost, now);
            lease.is_asking = true;
        }
        charge
    }

    /// Requests the next block if the current one runs low, so that no request waits for it.
    pub(super) fn renew_early(&mut self, key: Key, now: Now) {
        let unit_cost = self.parameters.spec.unit_cost;
        let Some(lease) = self.leases.find(key) else { return };
        if lease.is_asking || !lease.runs_low(now) {
            return;
        }
        let want = lease.permits_to_lease(unit_cost, now);
        if want > 0 {
            lease.is_asking = true;
            let arrears = self.arrears(key, now);
            let charge = Charge { want, arrears, ..self.empty_charge(key) };
            self.outbox.borrow_mut().add(Operation::Renew(
                self.number,
                self.plans.current(),
                charge,
            ));
        }
    }

    /// The caller's arrears for a question.
    fn arrears(&mut self, key: Key, now: Now) -> Option<Arrears> {
        let account = self.account(key);
        self.share.send_arrears(account, now)
    }

    /// Returns the permits of a request that were charged under `receipt`, in `term` if tentative.
    pub fn return_cost(&mut self, key: Key, (receipt, term): (u64, u64), permits: u64) {
        if self.is_in_flight {
            self.free(key, receipt);
            return;
        }
        // Daily quotas cannot undo a charge, and a check made none.
        if self.parameters.spec.daily.is_none() && !self.parameters.spec.checks {
            let effect = Effect::ReturnCost { receipt, term, permits };
            self.send_return(key, effect);
        }
    }

    /// Switches a caller to another plan: its lease and refusal are no longer valid.
    #[inline(never)]
    pub(super) fn change_plan(&mut self, key: Key, plan: u32) {
        let before = self.leases.find(key).map_or(plan, |lease| lease.plan);
        let (block, left) = self.leases.take(key);
        // The block is returned under the plan that charged it.
        self.use_plan(before);
        self.return_block(key, block, left);
        self.use_plan(plan);
        self.leases.change_plan(key);
    }

    /// Returns a block with `left` unspent permits.
    pub(super) fn return_block(&self, key: Key, block: Block, left: u64) {
        // A spent block is returned, too: it counts as outstanding until then.
        if block.permits == 0 {
            return;
        }
        let Block { permits, term, receipt } = block;
        let effect = Effect::ReturnBlock { receipt, term, block: permits, left };
        self.send_return(key, effect);
    }

    /// Returns blocks that have ended, or all of them: in one call, at most as many as
    /// `Leases::remove_ended` removes.
    pub(super) fn return_blocks(&mut self, now: Now, all: bool) {
        for Returned { key, plan, block, left } in self.leases.remove_ended(now, all) {
            self.use_plan(plan);
            self.return_block(key, block, left);
        }
    }

    /// Frees an in-flight slot.
    pub(super) fn free(&self, key: Key, receipt: u64) {
        let mut outbox = self.outbox.borrow_mut();
        let shard = outbox.shards.of(key);
        outbox.ledgers.free(shard, self.empty_charge(key), receipt);
    }

    fn send_return(&self, key: Key, effect: Effect) {
        self.outbox
            .borrow_mut()
            .add(Operation::Return(Charge { effect, ..self.empty_charge(key) }));
    }

    pub(super) fn empty_charge(&self, caller: Key) -> Charge {
        Charge {
            fingerprint: self.parameters.spec.fingerprint,
            caller,
            numbers: self.parameters.numbers,
            cost: 0,
            unit_cost: self.parameters.spec.unit_cost,
            want: 0,
            shadow: false,
            tentative: false,
            checks: false,
            keys: self.keys,
            effect: Effect::default(),
            counted: self.parameters.spec.keeps_used.then_some(0),
            arrears: None,
        }
    }
}
