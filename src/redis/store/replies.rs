//! Reads the replies of Redis: about requests, about leases, and to orders of operators.

use super::RedisStore;
use crate::protocol::{Charge, Effect, Question, Reply, RuleReply};
use crate::results::QuestionResult;
use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};
use diana_store::lease::Block;
use diana_store::refusal::{Reason, Refused};
use diana_store::reservation::{Decider, Memo};
use diana_store::slots::arrears::Arrears;
use diana_store::usage::{Order, OrderError, Usage};
use diana_store::{CheckOutcome, Reservation};

impl RedisStore {
    /// Decides a request by the result of its question, which contained these arrears.
    pub(super) fn on_result(&mut self, arrears: Option<Arrears>, reservation: &mut Reservation) {
        let key = reservation.account.key;
        reservation.memo = Memo::Empty;
        match self.result(key) {
            Some(QuestionResult::Decided { reply: Reply::Rule(reply), wait, sent, at }) => {
                if let Some(arrears) = arrears {
                    let gateways = self.gateways();
                    let Reservation { account, now, .. } = *reservation;
                    self.share.confirm_arrears(account, arrears, gateways, now);
                }
                self.decide(&reply, (wait, at), sent, reservation);
            }
            Some(QuestionResult::Repeat) => {
                self.clear_pending(key);
                reservation.outcome = CheckOutcome::Lost;
            }
            _ => {
                self.clear_pending(key);
                self.check_degraded(reservation);
            }
        }
    }

    /// Decides a request by the reply of Redis: it may leave `wait` ticks after `at`, the instant
    /// of the decision. The question was sent at `sent`.
    fn decide(
        &mut self,
        reply: &RuleReply,
        (wait, at): (Option<Micros>, Micros),
        sent: Now,
        reservation: &mut Reservation,
    ) {
        let Reservation { account, cost, now, .. } = *reservation;
        let wait = wait.filter(|_| reply.retry.is_none());
        let charged = if wait.is_some() { cost } else { 0 };
        let receipt = self.receive(account.key, reply, (cost, charged), (sent, now));
        // Leased permits of this worker are available to the caller, too.
        let left = self.left(account.key).unwrap_or(reply.remaining);
        match reply.retry {
            Some(retry) => {
                reservation.outcome = CheckOutcome::Refused(refused(reply, retry, left));
            }
            None => {
                let holds = self.parameters.holds;
                let wait_here = if holds { wait.unwrap_or(0) } else { 0 };
                let until = at.saturating_add(wait_here);
                let wait_now = until.saturating_sub(now.mono);
                // A queue position does not move.
                let longest_delay = if holds { wait_now } else { Micros::MAX };
                reservation.outcome = CheckOutcome::Admitted { wait: wait_now, longest_delay };
                reservation.receipt = wait.map(|_| receipt);
                reservation.memo = Memo::Granted { until, term: reply.term, left };
            }
        }
        (reservation.by, reservation.is_overflow) = (Decider::Authority, reply.overflow);
    }

    /// Handles the reply to a request of `cost` permits, sent at `sent`, of which `permits` were
    /// charged: the cost, or none. Returns the receipt for their return.
    pub fn receive(
        &mut self,
        key: Key,
        reply: &RuleReply,
        (cost, permits): (u64, u64),
        (sent, now): (Now, Now),
    ) -> u64 {
        if self.is_in_flight {
            let mut outbox = self.outbox.borrow_mut();
            let shard = outbox.shards.of(key);
            return match permits {
                0 => 0,
                // The slot counts only briefly until it is confirmed, since the reply may be lost.
                _ => outbox.ledgers.hold(shard, self.empty_charge(key), reply.receipt, now.mono),
            };
        }
        let current = self.plans.current();
        if self.leases.find(key).is_some_and(|lease| lease.plan != current) {
            return self.receive_for_former_plan(key, reply, permits, now);
        }
        // A rule with settlement records its grants when they are settled.
        if permits + reply.block > 0 && !self.parameters.spec.settles {
            self.record_grant(self.account(key), permits + reply.block, now);
        }
        match reply.retry {
            None if self.parameters.spec.daily.is_none() => self.store_lease(key, reply, sent),
            None => {}
            Some(retry) => self.remember_refusal(key, reply, cost, retry, (sent, now)),
        }
        reply.receipt
    }

    /// Handles the reply to a request under a previous plan: only its block and its charge are
    /// valid, and the block is returned.
    #[inline(never)]
    fn receive_for_former_plan(
        &mut self,
        key: Key,
        reply: &RuleReply,
        permits: u64,
        now: Now,
    ) -> u64 {
        if permits > 0 && !self.parameters.spec.settles {
            self.record_grant(self.account(key), permits, now);
        }
        let block = leased(reply);
        self.return_block(key, block, block.permits);
        reply.receipt
    }

    /// Remaining permits of a caller, as far as this worker knows: at Redis by its latest reply,
    /// and in this worker's lease.
    pub fn left(&mut self, key: Key) -> Option<u64> {
        let lease = self.leases.find(key)?;
        Some(lease.remaining_at_authority.saturating_add(lease.block().1))
    }

    /// Handles the result of a renewal.
    pub(super) fn complete(&mut self, key: Key, now: Now) {
        match self.result(key) {
            Some(QuestionResult::Decided { reply: Reply::Rule(reply), sent, .. }) => {
                self.receive(key, &reply, (self.parameters.spec.unit_cost, 0), (sent, now));
            }
            _ => self.clear_pending(key),
        }
    }

    /// Records that no question about the caller is pending.
    fn clear_pending(&mut self, key: Key) {
        if let Some(lease) = self.leases.find(key) {
            lease.is_asking = false;
        }
    }

    /// Stores a block that was leased with an admission. The rest of the previous block is
    /// returned.
    fn store_lease(&mut self, key: Key, reply: &RuleReply, sent: Now) {
        let block = leased(reply);
        if block.permits == 0 {
            if let Some(lease) = self.leases.find(key) {
                (lease.remaining_at_authority, lease.is_asking) = (reply.remaining, false);
            }
            return;
        }
        if let Some(lease) = self.leases.claim(key) {
            lease.remaining_at_authority = reply.remaining;
        }
        let (before, left) = self.leases.renew(key, block, reply.spend, sent);
        self.return_block(key, before, left);
        if let Some(lease) = self.leases.find(key) {
            lease.remaining_at_authority = lease.remaining_at_authority.saturating_add(left);
        }
    }

    fn remember_refusal(
        &mut self,
        key: Key,
        reply: &RuleReply,
        cost: u64,
        retry: Retry,
        (sent, now): (Now, Now),
    ) {
        let Some(lease) = self.leases.claim(key) else { return };
        (lease.remaining_at_authority, lease.is_asking) = (reply.remaining, false);
        lease.refuse(
            cost,
            refused(reply, retry, reply.remaining),
            !self.parameters.spec.settles,
            (sent, now),
        );
    }
}

/// Orders of operators.
impl RedisStore {
    /// Adds the question of an order.
    pub(super) fn query_usage(&mut self, key: Key, order: Order) -> Result<(), OrderError> {
        let effect = match order {
            Order::Reset => Effect::Reset,
            Order::Look | Order::Ban(_) | Order::Unban => Effect::ReadUsage,
        };
        if order == Order::Reset {
            self.can_reset()?;
        }
        let mut outbox = self.outbox.borrow_mut();
        if outbox.is_degraded(key) {
            return Err(OrderError::Unavailable);
        }
        outbox.ask(Question::Rule(Charge { effect, ..self.empty_charge(key) }));
        Ok(())
    }

    /// The usage after an order, by the result of its question.
    pub(super) fn usage(&mut self, key: Key, order: Order) -> Result<Usage, OrderError> {
        let reply = match self.result(key) {
            Some(QuestionResult::Decided { reply: Reply::Rule(reply), .. }) => reply,
            Some(QuestionResult::Repeat) => return Err(OrderError::Lost),
            _ => return Err(OrderError::Unanswered),
        };
        if order == Order::Reset {
            if reply.overflow {
                return Err(OrderError::Shared);
            }
            if let Some(lease) = self.leases.find(key) {
                lease.forget_refusal();
            }
        }
        Ok(self.read_usage(&reply))
    }

    /// Returns an error if the usage of this rule cannot be reset.
    fn can_reset(&self) -> Result<(), OrderError> {
        let unused = vec![0; self.parameters.spec.algorithm.properties().words];
        let mut new = unused.clone();
        match self.parameters.spec.daily {
            Some(_) => Err(OrderError::Quota),
            None if self.parameters.spec.algorithm.reset(&unused, Now::default(), 0, &mut new) => {
                Ok(())
            }
            None => Err(OrderError::InUse),
        }
    }

    /// A caller's usage, by the reply of Redis.
    fn read_usage(&self, reply: &RuleReply) -> Usage {
        // A reply to `ReadUsage` or `Reset` contains these values in the fields of the receipts.
        let RuleReply { remaining, receipt: leased, block: reserved, lease: ends, .. } = *reply;
        let charged = reply.charged;
        Usage {
            used: charged.saturating_sub(leased).saturating_sub(reserved),
            reserved,
            leased,
            remaining,
            ends,
            in_flight: self.is_in_flight.then_some(charged),
            is_shared: reply.overflow,
            ban: None,
        }
    }
}

/// The refusal of a reply, with this number of remaining permits.
fn refused(reply: &RuleReply, retry: Retry, left: u64) -> Refused {
    let reason = if reply.is_outstanding { Reason::Outstanding } else { Reason::Used };
    Refused { reason, retry, remaining: Some(left) }
}

/// The block that a reply leases.
fn leased(reply: &RuleReply) -> Block {
    Block { permits: reply.block, term: reply.term, receipt: reply.lease }
}
