//! What Redis answers.

use super::RedisStore;
use crate::decision::Retry;
use crate::key::Key;
use crate::redis::handle::Handle;
use crate::redis::protocol::RuleReply;
use crate::store::Reservation;
use crate::store::lease::{Block, Refusal};
use crate::time::{Micros, Now};

impl RedisStore {
    /// Takes what Redis said about a request of `cost` permits that was asked about at `sent`, of which `permits`
    /// were charged: the cost, or none. Under what they can be given back.
    pub fn receive(
        &mut self,
        key: Key,
        reply: &RuleReply,
        (cost, permits): (u64, u64),
        (sent, now): (Now, Now),
        handle: &mut Handle,
    ) -> u64 {
        if self.is_held {
            let part = handle.parts.of(key);
            return match permits {
                0 => 0,
                // It counts for a short time only, since the answer might have got lost.
                _ => handle.ledgers.hold(part, self.nothing(key), reply.receipt, now.mono),
            };
        }
        let is_past = self.leases.find(key).is_some_and(|lease| lease.plan != self.plans.in_hand());
        if is_past {
            return self.receive_for_nobody(key, reply, permits, (now, handle));
        }
        // What is settled is noted then.
        if permits + reply.block > 0 && !self.terms.spec.settles {
            self.share.note(key, permits + reply.block, now);
        }
        let is_leased = self.terms.spec.daily.is_none();
        let mut left = reply.remaining;
        if is_leased && reply.retry.is_none() {
            left = left.saturating_add(self.lend(key, reply, (sent, now), handle));
        }
        self.leases.find(key).into_iter().for_each(|lease| lease.hear(left, now));
        if let Some(Retry::After(ticks)) = reply.retry
            && let Some(lease) = self.leases.claim(key)
        {
            lease.asking = false;
            let refusal = Refusal { cost, retry: ticks, loan: reply.loan, left: reply.remaining };
            match self.terms.spec.settles {
                true => lease.refuse_shortly(refusal, now),
                false => lease.refuse(refusal, sent, now),
            }
        }
        reply.receipt
    }

    /// Takes what was asked by a plan that the caller has no more: a block goes back, and nothing else is true.
    #[inline(never)]
    fn receive_for_nobody(
        &mut self,
        key: Key,
        reply: &RuleReply,
        permits: u64,
        (now, handle): (Now, &mut Handle),
    ) -> u64 {
        if permits > 0 && !self.terms.spec.settles {
            self.share.note(key, permits, now);
        }
        let block = Block { permits: reply.block, term: reply.term, receipt: reply.lease };
        self.give_back_block(key, block, block.permits, handle);
        reply.receipt
    }

    /// Permits left to a caller, as far as is known here: those that Redis told of, and those that this
    /// worker holds.
    pub fn left(&mut self, key: Key) -> Option<u64> {
        let lease = self.leases.find(key)?;
        Some(lease.above.saturating_add(lease.left()))
    }

    /// Takes what became of an operation.
    pub fn complete(
        &mut self,
        key: Key,
        reply: Option<(RuleReply, Now)>,
        now: Now,
        handle: &mut Handle,
    ) {
        match reply {
            Some((reply, sent)) => {
                self.receive(key, &reply, (self.terms.spec.unit_cost, 0), (sent, now), handle);
            }
            None => self.not_asking(key),
        }
    }

    /// Decides about a request about which no answer came.
    pub fn unanswered(
        &mut self,
        key: Key,
        cost: u64,
        now: Now,
        handle: &mut Handle,
    ) -> Reservation {
        self.check_alone(key, cost, now, handle)
    }

    fn not_asking(&mut self, key: Key) {
        self.leases.find(key).into_iter().for_each(|lease| lease.asking = false);
    }

    /// Takes a block, in place of what is left of the one before. How much of that goes back.
    fn lend(
        &mut self,
        key: Key,
        reply: &RuleReply,
        (sent, now): (Now, Now),
        handle: &mut Handle,
    ) -> u64 {
        let block = Block { permits: reply.block, term: reply.term, receipt: reply.lease };
        if reply.starts > 0 {
            let begins = now.mono.saturating_add(reply.starts);
            return self.lend_ahead(key, block, (begins, sent.later(reply.spend)), handle);
        }
        let (before, left) = match self.leases.claim(key) {
            Some(lease) => lease.block(),
            None => {
                self.give_back_block(key, block, block.permits, handle);
                return block.permits;
            }
        };
        self.not_asking(key);
        if block.permits == 0 && before.permits > 0 {
            return 0;
        }
        self.give_back_block(key, before, left, handle);
        self.leases.renew(key, block, reply.spend, sent);
        left
    }

    /// Takes a block of the next slice, in place of one that was to come then. How much goes back.
    fn lend_ahead(
        &mut self,
        key: Key,
        block: Block,
        (begins, ends): (Micros, Now),
        handle: &mut Handle,
    ) -> u64 {
        let before = match self.leases.claim(key) {
            Some(lease) => lease.take_next(),
            None => block,
        };
        self.give_back_block(key, before, before.permits, handle);
        self.leases.reserve(key, block, begins, ends);
        before.permits
    }
}
