//! Handles replies of Redis.

use super::RedisStore;
use crate::protocol::RuleReply;
use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::time::Now;
use diana_store::lease::{Block, LeaseRefusal};

impl RedisStore {
    /// Handles the reply to a request of `cost` permits, sent at `sent`, of which `permits` were
    /// charged: the cost, or none. Returns the receipt for their return.
    pub fn receive(
        &mut self,
        key: Key,
        reply: &RuleReply,
        (cost, permits): (u64, u64),
        (sent, now): (Now, Now),
    ) -> u64 {
        if self.is_held {
            let mut handle = self.handle.borrow_mut();
            let part = handle.parts.of(key);
            return match permits {
                0 => 0,
                // The slot counts only briefly until it is confirmed, since the reply may be lost.
                _ => handle.ledgers.hold(part, self.nothing(key), reply.receipt, now.mono),
            };
        }
        let is_past = self.leases.find(key).is_some_and(|lease| lease.plan != self.plans.in_hand());
        if is_past {
            return self.receive_for_nobody(key, reply, permits, now);
        }
        // A reservation is recorded when it is settled.
        if permits + reply.block > 0 && !self.terms.spec.settles {
            self.share.note(self.account(key), permits + reply.block, now);
        }
        match reply.retry {
            None if self.terms.spec.daily.is_none() => self.lend(key, reply, sent),
            None => {}
            Some(retry) => self.remember_refusal(key, reply, cost, retry, (sent, now)),
        }
        reply.receipt
    }

    /// Handles the reply to a request under a previous plan: only its block and its charge are
    /// valid, and the block is returned.
    #[inline(never)]
    fn receive_for_nobody(&mut self, key: Key, reply: &RuleReply, permits: u64, now: Now) -> u64 {
        if permits > 0 && !self.terms.spec.settles {
            self.share.note(self.account(key), permits, now);
        }
        let block = leased(reply);
        self.give_back_block(key, block, block.permits);
        reply.receipt
    }

    /// Remaining permits of a caller, as far as this worker knows: at Redis by its latest reply,
    /// and in this worker's lease.
    pub fn left(&mut self, key: Key) -> Option<u64> {
        let lease = self.leases.find(key)?;
        Some(lease.above.saturating_add(lease.block().1))
    }

    /// Handles the end of an operation.
    pub fn complete(&mut self, key: Key, reply: Option<(RuleReply, Now)>, now: Now) {
        match reply {
            Some((reply, sent)) => {
                self.receive(key, &reply, (self.terms.spec.unit_cost, 0), (sent, now));
            }
            None => {
                if let Some(lease) = self.leases.find(key) {
                    lease.asking = false;
                }
            }
        }
    }

    /// Stores a block that was leased with an admission. The rest of the previous block is
    /// returned.
    fn lend(&mut self, key: Key, reply: &RuleReply, sent: Now) {
        let block = leased(reply);
        if block.permits == 0 {
            if let Some(lease) = self.leases.find(key) {
                (lease.above, lease.asking) = (reply.remaining, false);
            }
            return;
        }
        if let Some(lease) = self.leases.claim(key) {
            lease.above = reply.remaining;
        }
        let (before, left) = self.leases.renew(key, block, reply.spend, sent);
        self.give_back_block(key, before, left);
        if let Some(lease) = self.leases.find(key) {
            lease.above = lease.above.saturating_add(left);
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
        (lease.above, lease.asking) = (reply.remaining, false);
        if let Retry::After(retry) = retry {
            let (is_outstanding, left) = (reply.is_outstanding, reply.remaining);
            let refusal = LeaseRefusal { cost, retry, is_outstanding, left };
            lease.refuse(refusal, !self.terms.spec.settles, sent, now);
        }
    }
}

/// The block that a reply leases.
fn leased(reply: &RuleReply) -> Block {
    Block { permits: reply.block, term: reply.term, receipt: reply.lease }
}
