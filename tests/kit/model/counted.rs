//! What was used, where that is kept beside what is reserved or used.

use diana_core::decision::Retry;
use diana_core::time::Now;

use super::Asked;
use super::look::Look;

impl Look<'_> {
    /// Charges what has turned out to count to what was used.
    pub(super) fn count(&mut self, now: Now) {
        let is_window = self.is_window();
        let Some((words, permits)) = self.state.used.as_mut().zip(self.asked.counted) else {
            return;
        };
        if is_window && self.algorithm.expires(words, now) <= now.mono {
            words.fill(0);
        }
        let old = words.clone();
        match self.slices {
            Some(slices) => slices.charge(words, permits, now.mono),
            None if permits > 0 => self.algorithm.debit(&old, now, permits, words),
            None => {}
        }
    }

    /// What was charged before anything else that is open has drained, whoever used it.
    pub(super) fn forget_the_past(&mut self) {
        if self.asked.receipt < self.state.open.1 {
            self.asked.left = 0;
            self.asked.counted = self.asked.counted.map(|counted| counted.min(self.asked.debt));
        }
    }

    /// Whether a bucket is not full.
    pub(super) fn owes(&self, now: Now) -> bool {
        self.bucket().is_some_and(|bucket| bucket.debt(&self.state.words, now.mono) > 0)
    }

    /// A charge is made that will be settled.
    pub(super) fn note_open(&mut self, now: Now) {
        if self.state.used.is_none() || !self.refills() {
            return;
        }
        if !self.owes(now) {
            self.state.open = (0, now.mono);
        }
        self.state.open.0 += self.asked.cost;
    }

    /// What was settled is open no more: the debt is at most what was used and what is open.
    pub(super) fn close(&mut self, now: Now) {
        let Some(bucket) = self.bucket() else { return };
        let Some(used) = &mut self.state.used else { return };
        let Asked { counted, left, debt, .. } = self.asked;
        let ended = counted.unwrap_or(0) + left - debt;
        self.state.open.0 = self.state.open.0.saturating_sub(ended);
        let open = u128::from(self.state.open.0) * u128::from(bucket.unit);
        let known = bucket.debt(used, now.mono);
        let debt = bucket.debt(&self.state.words, now.mono).min(known + open);
        let words = |debt: u128| vec![debt as u64, (debt >> 64) as u64, now.mono];
        *used = words(known.min(debt));
        self.state.words = words(debt);
    }

    /// A refusal of so many permits, unless what was used would let them through.
    pub(super) fn unless_reserved(&self, now: Now, cost: u64, retry: Retry) -> Retry {
        let fits = |words: &Vec<u64>| self.algorithm.remaining(words, now) >= cost;
        match retry {
            Retry::After(_) if self.state.used.as_ref().is_some_and(fits) => Retry::Soon,
            other => other,
        }
    }

    /// Whether what was used still means something.
    pub(super) fn has_used(&self, now: Now) -> bool {
        let means = |words: &Vec<u64>| match self.slices {
            Some(slices) => slices.used(words, 0, now.mono) > 0,
            None => self.algorithm.expires(words, now) > now.mono,
        };
        self.state.used.as_ref().is_some_and(means)
    }
}
