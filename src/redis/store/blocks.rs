//! Blocks that Redis leases to the gateway, and the parts of them that this worker spends.

use super::RedisStore;
use crate::outbox::Operation;
use crate::protocol::{Charge, Effect};
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now, SECOND};
use diana_store::gateway_leases::GatewayLease;
use diana_store::lease::{Block, Lease, LeaseDecision, Pace, Received, Wanted};
use diana_store::leases::Returned;
use diana_store::refusal::Refused;
use diana_store::{Account, CheckOutcome, Reservation};

/// How often a worker looks after its blocks.
const TICK: Micros = SECOND / 80;

/// Why a worker looks at the lease of its gateway.
#[derive(Clone, Copy)]
enum Purpose<'r> {
    /// For a request, with its permits.
    Request(u64),
    /// In advance.
    Ahead,
    /// To store the reply to a question.
    Reply(Received<'r>),
    /// To return its part, and the block of the gateway if it has ended, or in any case.
    Return(bool),
}

/// The result of a look at the lease.
#[derive(Default)]
struct Looked {
    /// The part that it gets.
    part: Block,
    /// The lease of the gateway afterwards.
    lease: Lease,
    /// The refusal of the request, and until when it is remembered.
    refused: Option<(Refused, Micros)>,
    /// The next block to ask for.
    wanted: Wanted,
    /// The blocks to return, under their plans.
    back: Vec<Returned>,
}

/// Decisions by the lease of the gateway.
impl RedisStore {
    /// How leases follow demand.
    fn pace(&self) -> Pace {
        let outbox = self.outbox.borrow();
        Pace::of_fleet(outbox.trip, outbox.timeout, self.parameters.window, self.parameters.soon)
    }

    /// Returns true if the gateway may have a lease of the caller.
    fn may_have_lease(&mut self, key: Key) -> bool {
        self.parameters.leases && self.leases.find(key).is_some_and(|lease| lease.is_frequent())
    }

    /// Decides a request without a call to Redis. Returns false if that is impossible.
    pub(super) fn recall(&mut self, reservation: &mut Reservation, is_degraded: bool) -> bool {
        let Reservation { account, cost, now, .. } = *reservation;
        let key = account.key;
        let (decision, former) = self.leases.recall(reservation, self.pace());
        if let Some(former) = former {
            self.give_back(former);
            self.use_plan(account.plan);
        }
        match decision {
            LeaseDecision::Leased => return true,
            LeaseDecision::Refused(_) if !is_degraded => return true,
            _ if is_degraded || !self.may_have_lease(key) => return false,
            LeaseDecision::Refused(_) | LeaseDecision::Undecided => {}
        }
        let part = self.leases.take(key);
        let found = self.look(key, part, now, Purpose::Request(cost));
        match found.and_then(|found| found.refused) {
            Some((refused, until)) => {
                if let Some(lease) = self.leases.find(key) {
                    lease.remember(cost, refused, now, until);
                }
                reservation.outcome = CheckOutcome::Refused(refused);
                true
            }
            None => self.leases.use_part(reservation),
        }
    }

    /// Takes permits of the gateway's block, and asks for the next one, before those of this worker
    /// are spent.
    pub(super) fn look_ahead(&mut self, key: Key, now: Now) {
        let (unit_cost, pace) = (self.parameters.spec.unit_cost, self.pace());
        if self.leases.find(key).is_some_and(|lease| lease.looks_ahead(unit_cost, now, pace)) {
            let part = self.leases.take(key);
            self.look(key, part, now, Purpose::Ahead);
        }
    }

    /// The block that a question about a request asks for.
    pub(super) fn wanted(&mut self, key: Key, cost: u64, now: Now) -> Wanted {
        if !self.parameters.leases || self.leases.claim(key).is_none() || !self.may_have_lease(key)
        {
            return Wanted::default();
        }
        let pace = self.pace();
        self.change(key, now, |lease| lease.ask(cost, now, pace)).unwrap_or_default()
    }

    /// Stores the reply to a question.
    pub(super) fn store_reply(&mut self, key: Key, received: Received<'_>) {
        let Received { reply, cost, now, asked, .. } = received;
        let is_known = self.leases.claim(key).is_some();
        if asked.permits == 0 && !self.may_have_lease(key) || !is_known {
            let (block, left) = self.leases.receive(key, received, self.parameters.lessor);
            return self.return_block(key, block, left);
        }
        let part = self.leases.take(key);
        let Some(found) = self.look(key, part, now, Purpose::Reply(received)) else {
            return self.return_block(key, reply.leased(), reply.block);
        };
        if let Some(retry) = reply.retry
            && !found.lease.has(cost, now)
        {
            let until = found.lease.refuses_until(cost, now, self.pace());
            if let Some(lease) = self.leases.find(key) {
                lease.remember(cost, reply.refused(retry, reply.remaining), now, until);
            }
        }
        if asked.permits > 0 || reply.block > 0 {
            let (account, early) = (self.account(key), self.early());
            self.received.retain(|(known, _)| *known != account);
            self.received.push((account, found.lease.continues_until(early, now)));
        }
    }

    /// Returns true if permits for the request of a reply are leased to this gateway.
    pub(super) fn has_permits(
        &mut self,
        key: Key,
        Received { cost, now, .. }: Received<'_>,
    ) -> bool {
        self.leases.find(key).is_some_and(|lease| lease.has(cost, now))
            || self.may_have_lease(key)
                && self.change(key, now, |lease| lease.has(cost, now)).unwrap_or(false)
    }

    /// Records that no question about the caller is pending.
    pub(super) fn clear_pending(&mut self, key: Key, now: Now) {
        self.change(key, now, Lease::on_no_reply);
    }

    /// Forgets refusals of the caller.
    pub(super) fn forget_refusal(&mut self, key: Key, now: Now) {
        if self.may_have_lease(key) {
            self.change(key, now, Lease::forget_refusal);
        }
        if let Some(lease) = self.leases.find(key) {
            lease.forget_refusal();
        }
    }

    fn change<T>(
        &mut self,
        key: Key,
        now: Now,
        mut change: impl FnMut(&mut Lease) -> T,
    ) -> Option<T> {
        self.blocks.change(self.account(key), now.mono, |known| change(&mut known.lease))
    }

    /// Looks at the lease of the gateway, where this worker has a part of a block. `None` if there
    /// cannot be one.
    fn look(
        &mut self,
        key: Key,
        (part, left): (Block, u64),
        now: Now,
        purpose: Purpose<'_>,
    ) -> Option<Looked> {
        let (plan, pace) = (self.plans.current(), self.pace());
        let early = self.early();
        let (unit_cost, lessor) = (self.parameters.spec.unit_cost, self.parameters.lessor);
        let own = self.leases.find(key).map(|lease| lease.take_counts()).unwrap_or_default();
        let found = self.blocks.change(self.account(key), now.mono, |known| {
            let mut found = Looked::default();
            if known.lease.plan != plan {
                found.returns(known.lease.plan, key, known.take_blocks());
                known.lease.change_plan(plan);
            }
            if !known.merge(part, left) {
                found.returns(plan, key, [(part, left)]);
            }
            let lease = &mut known.lease;
            lease.count(own.uncounted(), now, pace);
            match purpose {
                Purpose::Request(cost) => {
                    match lease.judge(cost, now, pace) {
                        LeaseDecision::Leased => {
                            found.part = lease.give(&own, cost, unit_cost, now, pace);
                        }
                        LeaseDecision::Refused(refused) => {
                            found.refused = Some((refused, lease.refuses_until(cost, now, pace)));
                        }
                        // So that the request can use its permits. Its question asks for the next block.
                        LeaseDecision::Undecided => {
                            found.returns(plan, key, known.take_blocks());
                            found.lease = known.lease;
                            return found;
                        }
                    }
                    found.renew(known, &own, cost, unit_cost, now, pace);
                    if found.refused.is_some() && known.has_ended(now, pace) {
                        found.returns(plan, key, known.take_blocks());
                    }
                }
                Purpose::Ahead => {
                    found.part = lease.give(&own, 0, unit_cost, now, pace);
                    found.renew(known, &own, 0, unit_cost, now, pace);
                }
                Purpose::Reply(received) => {
                    match received.reply.retry {
                        Some(retry) => lease.on_refusal(received, retry, lessor),
                        None => {
                            let before = lease.on_admission(received, lessor);
                            found.returns(plan, key, known.follow(before));
                        }
                    }
                    found.part = known.lease.give(&own, 0, unit_cost, now, pace);
                }
                Purpose::Return(all) => {
                    if !all && lease.continues(unit_cost, now, early, pace) {
                        found.wanted = lease.ask(unit_cost, now, pace);
                        found.returns(plan, key, known.take_before_next(now, pace));
                    } else if all || known.has_ended(now, pace) {
                        found.returns(plan, key, known.take_blocks());
                    }
                }
            }
            found.lease = known.lease;
            found
        });
        let Some(found) = found else {
            self.return_block(key, part, left);
            return None;
        };
        let asks = found.wanted.permits > 0;
        for Returned { key, plan, block, left } in &found.back {
            self.use_plan(*plan);
            self.return_with(asks, *key, *block, *left, now);
        }
        self.use_plan(plan);
        self.leases.take_part(key, (found.part, &found.lease), unit_cost, now, pace);
        if asks {
            let Wanted { permits: want, ahead } = found.wanted;
            let charge = Charge { want, ahead, ..self.with_arrears(key, now) };
            self.outbox.borrow_mut().add(Operation::Renew(self.number, plan, charge));
        }
        Some(found)
    }
}

/// Returns of blocks.
impl RedisStore {
    /// Returns blocks that have ended, or all of them: parts of this worker to the gateway, and the
    /// blocks that it received to Redis.
    pub(super) fn return_blocks(&mut self, now: Now, all: bool) {
        for Returned { key, plan, block, left } in self.leases.remove_ended(now, all) {
            self.use_plan(plan);
            self.look(key, (block, left), now, Purpose::Return(false));
        }
        let soon = now.mono.saturating_add(self.early());
        let is_over = |(_, until): &mut (Account, Micros)| all || *until <= soon;
        let over: Vec<(Account, Micros)> = self.received.extract_if(.., is_over).collect();
        for (account, until) in over {
            self.use_plan(account.plan);
            let look = self.look(account.key, Default::default(), now, Purpose::Return(all));
            let ends = look.map_or(0, |found| found.lease.ends());
            if !all && now.mono < until.max(ends) {
                self.received.push((account, until.max(ends)));
            }
        }
    }

    /// How long before the end of a block its gateway looks whether the next one is due.
    fn early(&self) -> Micros {
        self.pace().notice.saturating_add(TICK)
    }

    /// Returns true if it has blocks to return.
    pub(super) fn has_blocks(&self) -> bool {
        self.leases.has_blocks() || !self.received.is_empty()
    }

    /// Returns a block with `left` unspent permits. A spent one, too: it counts as outstanding until
    /// then.
    pub(super) fn return_block(&self, key: Key, block: Block, left: u64) {
        if block.permits > 0 {
            let operation = Operation::Return(self.returned(key, block, left));
            self.outbox.borrow_mut().add(operation);
        }
    }

    /// Returns a block with the question that leaves now, or with another call if it is spent.
    fn return_with(&self, asks: bool, key: Key, block: Block, left: u64, now: Now) {
        if asks || left > 0 {
            return self.return_block(key, block, left);
        }
        let operation = Operation::Return(self.returned(key, block, left));
        self.outbox.borrow_mut().add_later(operation, now.mono);
    }

    fn returned(&self, key: Key, block: Block, left: u64) -> Charge {
        let Block { permits, term, receipt } = block;
        let effect = Effect::ReturnBlock { receipt, term, block: permits, left };
        Charge { effect, ..self.empty_charge(key) }
    }

    /// Returns a block under the plan that charged it.
    fn give_back(&mut self, Returned { key, plan, block, left }: Returned) {
        self.use_plan(plan);
        self.return_block(key, block, left);
    }
}

impl Looked {
    /// Adds blocks to return.
    fn returns(&mut self, plan: u64, key: Key, blocks: impl IntoIterator<Item = (Block, u64)>) {
        let blocks = blocks.into_iter().filter(|(block, _)| block.permits > 0);
        self.back.extend(blocks.map(|(block, left)| Returned { key, plan, block, left }));
    }

    /// Asks for the next block, if that is due. The request takes `cost` of the part.
    fn renew(
        &mut self,
        known: &mut GatewayLease,
        own: &Lease,
        cost: u64,
        unit_cost: u64,
        now: Now,
        pace: Pace,
    ) {
        let lease = &mut known.lease;
        let more = lease.spared(own, self.part.permits.saturating_sub(cost), now, pace);
        if lease.is_due(more, unit_cost, now, pace)
            && lease.wanted(unit_cost, now, pace).permits > 0
        {
            self.wanted = lease.ask(unit_cost, now, pace);
            let (plan, key) = (lease.plan, lease.key());
            self.returns(plan, key, known.take_before_next(now, pace));
        }
    }
}
