//! What Redis answers.

use super::{Fleet, Source};
use crate::decision::{Decision, Retry};
use crate::fleet::script::Opinion;
use crate::key::Key;
use crate::store::Judged;
use crate::store::lease::Block;
use crate::time::{Micros, Now};

impl Fleet {
    /// Takes what Redis said about a request that was asked about at `sent`, of which `permits` were
    /// charged: the cost, or none.
    pub fn told(&mut self, key: Key, opinion: &Opinion, permits: u64, sent: Now, now: Now) {
        if permits + opinion.block > 0 {
            self.share.note(key, permits + opinion.block, now);
        }
        if opinion.block > 0 || opinion.retry.is_none() {
            self.lend(key, opinion, sent, now);
        }
        self.leases.find(key).into_iter().for_each(|lease| lease.hear(opinion.remaining, now));
        if let Some(Retry::After(ticks)) = opinion.retry
            && let Some(lease) = self.leases.claim(key)
        {
            lease.asking = false;
            lease.refuse(now, ticks.max(self.gather));
        }
    }

    /// Takes what became of an errand.
    pub fn brought(&mut self, key: Key, answer: Option<(Opinion, Now)>, now: Now) {
        match answer {
            Some((opinion, sent)) => self.told(key, &opinion, 0, sent, now),
            None => self.not_asking(key),
        }
    }

    /// Decides about a request about which no answer came.
    pub fn unanswered(&mut self, key: Key, now: Now) -> Judged {
        (self.key, self.now, self.source) = (key, now, Source::Fixed);
        self.judge_alone()
    }

    fn not_asking(&mut self, key: Key) {
        self.leases.find(key).into_iter().for_each(|lease| lease.asking = false);
    }

    /// How long a refusal of Redis lasts here.
    #[must_use]
    pub fn refusal(&self, retry: Retry) -> Decision {
        match retry {
            Retry::After(ticks) => Decision::retry(ticks.max(self.gather)),
            Retry::Never => Decision::NEVER,
        }
    }

    /// Takes a block, in place of what is left of the one before.
    fn lend(&mut self, key: Key, opinion: &Opinion, sent: Now, now: Now) {
        let block = Block { permits: opinion.block, term: 0, receipt: opinion.lease };
        if opinion.starts > 0 {
            let begins = now.mono.saturating_add(opinion.starts);
            return self.lend_ahead(key, block, begins, sent.later(opinion.spend));
        }
        let (before, left) = match self.leases.claim(key) {
            Some(lease) => lease.block(),
            None => return self.give_back_block(key, block, block.permits),
        };
        if block.permits > 0 || before.permits == 0 {
            self.give_back_block(key, before, left);
            self.leases.renew(key, block, opinion.spend, sent);
        }
        self.not_asking(key);
    }

    /// Takes a block of the next slice.
    fn lend_ahead(&mut self, key: Key, block: Block, begins: Micros, ends: Now) {
        let before = match self.leases.claim(key) {
            Some(lease) => lease.take_next(),
            None => block,
        };
        self.give_back_block(key, before, before.permits);
        self.leases.reserve(key, block, begins, ends);
    }
}
