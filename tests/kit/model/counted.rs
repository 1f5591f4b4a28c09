//! Rules of which only some requests count: what those used is kept beside what is reserved or used.

use diana_core::decision::Retry;
use diana_core::time::Now;

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
