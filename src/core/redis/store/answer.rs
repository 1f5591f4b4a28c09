//! What Redis answers.

use super::RedisStore;
use crate::decision::{Decision, Retry};
use crate::key::Key;
use crate::redis::handle::Handle;
use crate::redis::protocol::Opinion;
use crate::store::Reservation;
use crate::store::lease::{Block, Refusal};
use crate::time::{Micros, Now};

impl RedisStore {
    /// Takes what Redis said about a request that was asked about at `sent`, of which `permits` were
    /// charged: the cost, or none.
    pub fn told(
        &mut self,
        key: Key,
        opinion: &Opinion,
        permits: u64,
        (sent, now): (Now, Now),
        handle: &mut Handle,
    ) {
        if permits + opinion.block > 0 {
            self.share.note(key, permits + opinion.block, now);
        }
        let is_leased = self.meter.daily.is_none();
        let mut left = opinion.remaining;
        if is_leased && (opinion.block > 0 || opinion.retry.is_none()) {
            left = left.saturating_add(self.lend(key, opinion, (sent, now), handle));
        }
        self.leases.find(key).into_iter().for_each(|lease| lease.hear(left, now));
        if let Some(Retry::After(ticks)) = opinion.retry
            && let Some(lease) = self.leases.claim(key)
        {
            lease.asking = false;
            let refusal = Refusal { retry: ticks, loan: opinion.loan, left: opinion.remaining };
            lease.refuse(refusal, sent, now);
        }
    }

    /// Permits left to a caller, as far as is known here: those that Redis told of, and those that this
    /// worker holds.
    pub fn left(&mut self, key: Key) -> Option<u64> {
        let lease = self.leases.find(key)?;
        Some(lease.above.saturating_add(lease.left()))
    }

    /// Takes what became of an errand.
    pub fn brought(
        &mut self,
        key: Key,
        answer: Option<(Opinion, Now)>,
        now: Now,
        handle: &mut Handle,
    ) {
        match answer {
            Some((opinion, sent)) => self.told(key, &opinion, 0, (sent, now), handle),
            None => self.not_asking(key),
        }
    }

    /// Decides about a request about which no answer came.
    pub fn unanswered(&mut self, key: Key, now: Now, handle: &mut Handle) -> Reservation {
        self.check_alone(key, now, handle)
    }

    fn not_asking(&mut self, key: Key) {
        self.leases.find(key).into_iter().for_each(|lease| lease.asking = false);
    }

    /// How long a refusal of Redis lasts here.
    #[must_use]
    pub fn refusal(&self, retry: Retry) -> Decision {
        match retry {
            Retry::After(ticks) => Decision::retry(ticks),
            Retry::Never => Decision::NEVER,
        }
    }

    /// Takes a block, in place of what is left of the one before. How much of that goes back.
    fn lend(
        &mut self,
        key: Key,
        opinion: &Opinion,
        (sent, now): (Now, Now),
        handle: &mut Handle,
    ) -> u64 {
        let block = Block { permits: opinion.block, term: opinion.term, receipt: opinion.lease };
        if opinion.starts > 0 {
            let begins = now.mono.saturating_add(opinion.starts);
            return self.lend_ahead(key, block, (begins, sent.later(opinion.spend)), handle);
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
        self.leases.renew(key, block, opinion.spend, sent);
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
