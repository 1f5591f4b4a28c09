//! What an operator is told, and lifts.

use diana_core::redis::protocol::RuleReply;
use diana_core::time::Now;

use super::look::{Look, NOTHING};
use super::{LIFTS, Receipts};

impl Look<'_> {
    /// What requests under way hold, where that is told apart from what was used.
    fn reserved(&self, now: Now) -> u64 {
        match &self.state.used {
            Some(_) if self.refills() && self.owes(now) => self.state.open.0,
            Some(_) if self.refills() => 0,
            Some(used) => self.algorithm.remaining(used, now).saturating_sub(self.left(now)),
            None => 0,
        }
    }

    fn lent(&self) -> u64 {
        if self.state.used.is_some() { 0 } else { self.state.terms.out() }
    }

    /// Lifts what was used, if that is asked: only what is out or reserved stays charged.
    pub(super) fn lift(&mut self, now: Now) {
        if self.asked.what != LIFTS {
            return;
        }
        let kept = self.lent() + self.reserved(now);
        let beside = self.state.next;
        self.state.words = self.only(kept.saturating_sub(beside), now);
        self.state.slack = 0;
        if self.state.used.is_some() {
            self.state.used = Some(self.only(kept, now));
        }
        if self.state.used.is_some() && self.refills() {
            self.state.open = (0, now.mono);
        }
        self.changed = true;
    }

    /// The state in which nothing else is charged.
    fn only(&self, permits: u64, now: Now) -> Vec<u64> {
        let nobody = vec![0; self.state.words.len()];
        let mut words = nobody.clone();
        match self.slices {
            Some(slices) => slices.charge(&mut words, permits, now.mono),
            None if permits > 0 => self.algorithm.debit(&nobody, now, permits, &mut words),
            None => {}
        }
        words
    }

    /// What is told of it.
    pub(super) fn told(&self, now: Now) -> (RuleReply, Receipts) {
        let (remaining, block) = (self.left(now), self.reserved(now));
        (RuleReply { remaining, block, ..NOTHING }, Receipts { cost: self.lent(), lease: 0 })
    }
}
