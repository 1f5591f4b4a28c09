//! What is asked of Redis.

use super::RedisStore;
use crate::key::Key;
use crate::redis::handle::{Handle, Operation};
use crate::redis::protocol::{Back, Charge};
use crate::store::lease::{Block, Lease};
use crate::time::{Micros, Now, SECOND};

/// How far ahead a pressing caller's needs are leased even if that is most of what is left: short
/// enough that all of it will be used.
const SOON: Micros = SECOND / 50;

impl RedisStore {
    /// What a request asks, with a block for those that come next if the caller is worth one;
    /// `tentative` if it may be refused elsewhere.
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
            (charge.want, charge.soon) = wishes(lease, cost, now);
            lease.ask(charge.soon, now);
        }
        charge
    }

    /// Asks for another block before somebody has to wait for it; not yet where permits have to gather
    /// first.
    pub(super) fn ask_for_more(&mut self, key: Key, now: Now, handle: &mut Handle) {
        let mut charge = self.nothing(key);
        let Some(lease) = self.leases.find(key) else { return };
        let gathers = lease.is_short(now) && lease.since_asked(now) < self.terms.gather;
        if lease.asking || gathers {
            return;
        }
        (charge.want, charge.soon) = wishes(lease, self.terms.spec.unit_cost, now);
        if charge.want > 0 {
            lease.ask(charge.soon, now);
            handle.add(Operation::Renew(self.number, self.plans.in_hand(), charge));
        }
    }

    /// Gives back the permits of a request that were charged under `receipt`, in `term` if tentatively.
    pub fn give_back(
        &mut self,
        key: Key,
        (receipt, term): (u64, u64),
        permits: u64,
        handle: &mut Handle,
    ) {
        if self.is_held {
            handle.ledgers.free(handle.parts.of(key), self.nothing(key), receipt);
            return;
        }
        // What nobody can tell from others' is not given back, nor what was not charged.
        if self.terms.spec.daily.is_none() && !self.terms.spec.checks {
            let back = Back::Cost { receipt, term, permits };
            self.send_back(key, back, handle);
        }
    }

    /// A caller has another plan from now on: what is known of it by the one before is not true any more.
    #[inline(never)]
    pub(super) fn change_plan(&mut self, key: Key, plan: u32, now: Now, handle: &mut Handle) {
        self.hand_in(key, now, true, handle);
        self.judge_by(plan);
        self.leases.find(key).into_iter().for_each(|lease| lease.begin_anew(plan));
    }

    /// Gives back what is left of the caller's blocks, but for one that is still used.
    pub(super) fn hand_in(&mut self, key: Key, now: Now, all: bool, handle: &mut Handle) {
        let Some(lease) = self.leases.find(key) else { return };
        let keeps = !all && !lease.is_idle(now);
        let ((block, left), next) = (lease.block(), lease.take_next());
        if !keeps {
            lease.forget();
        }
        // What is left comes back as it was charged.
        let plan = lease.plan;
        self.judge_by(plan);
        if keeps {
            return self.give_back_block(key, next, next.permits, handle);
        }
        self.give_back_block(key, block, left, handle);
        self.give_back_block(key, next, next.permits, handle);
    }

    /// Gives back a block of which so many permits are left.
    pub(super) fn give_back_block(&self, key: Key, block: Block, left: u64, handle: &mut Handle) {
        // Also one that was used up, since it counts as out until Redis hears of it.
        if block.permits == 0 {
            return;
        }
        let Block { permits, term, receipt } = block;
        let back = Back::Block { receipt, term, block: permits, left };
        self.send_back(key, back, handle);
    }

    /// Gives back all blocks that are idle, or all of them. Whether any is still out.
    pub(super) fn hand_in_blocks(&mut self, now: Now, all: bool, handle: &mut Handle) -> bool {
        let (keys, any) = self.leases.idle(now, all);
        keys.into_iter().for_each(|key| self.hand_in(key, now, all, handle));
        any
    }

    fn send_back(&self, key: Key, back: Back, handle: &mut Handle) {
        handle.add(Operation::GiveBack(Charge { back, ..self.nothing(key) }));
    }

    pub(super) fn nothing(&self, caller: Key) -> Charge {
        Charge {
            fingerprint: self.terms.spec.fingerprint,
            caller,
            numbers: self.terms.numbers,
            cost: 0,
            unit_cost: self.terms.spec.unit_cost,
            want: 0,
            soon: 0,
            shadow: false,
            tentative: false,
            checks: false,
            keys: self.keys,
            back: Back::default(),
            counted: self.terms.spec.keeps_used.then_some(0),
        }
    }
}

/// Permits to be leased if there are many, and those that are needed soon.
fn wishes(lease: &mut Lease, cost: u64, now: Now) -> (u64, u64) {
    if lease.is_dry(now) {
        // What nobody uses here at once would keep others waiting.
        let waiting = lease.waiting.saturating_mul(cost);
        return (waiting, waiting);
    }
    match lease.demand.want(cost, now) {
        0 => (0, 0),
        want => {
            let soon = lease.demand.need(cost, SOON, now);
            (want.max(soon), soon)
        }
    }
}
