//! What was used, where that is kept beside what is reserved or used.

use diana_core::algorithm::Entry;
use diana_core::decision::Retry;
use diana_core::policy::Quota;
use diana_core::time::Now;

use super::Asked;
use super::look::Look;

impl Look {
    /// Charges what has turned out to count to what was used: where it was charged, as long as that counts.
    pub(super) fn count(&mut self, now: Now) {
        let is_window = self.is_window();
        let Some((used, permits)) = self.state.used.as_mut().zip(self.asked.counted) else {
            return;
        };
        let Asked { receipt, debt, .. } = self.asked;
        let within = permits.saturating_sub(debt);
        if let Some(slices) = self.slices {
            slices.charge(used, 0, now.mono);
            if permits > 0 {
                slices.charge_late(used, within, receipt, now.mono);
                slices.charge(used, debt, now.mono);
            }
        } else if is_window {
            let words = &self.state.words;
            let is_in_force = words[1] > 0 && self.algorithm.expires(words, now) > now.mono;
            let is_same = is_in_force && (used[0], used[2]) == (words[0], words[2]);
            let is_own = permits > 0 && is_in_force && self.algorithm.receipt(words) == receipt;
            let sum = if is_same { used[1] } else { 0 }
                + if is_own { within } else { 0 }
                + if permits > 0 { debt } else { 0 };
            used.copy_from_slice(&[words[0], sum, words[2]]);
        } else if permits > 0 {
            let old = used.clone();
            self.algorithm.debit(&old, now, permits, used);
        }
    }

    /// What is settled may have been charged under another plan: a bucket drains by the one that the caller has had since.
    pub(super) fn drain_by_what_was_last_admitted(&mut self, entry: &Entry) {
        let rate = self.state.open.2;
        if self.asked.cost > 0 || self.state.used.is_none() || !self.refills() || rate == 0 {
            return;
        }
        let old = self.quota;
        let burst = if old.rpu > 0 { old.burst.unwrap_or(old.rpu) } else { 0 };
        let (slowest, fastest) = (Some(old.lasting()), Some(old.fastest()));
        let common = Quota { rpu: rate, burst: Some(burst), slowest, fastest, cost: 0, ..old };
        (self.quota, self.algorithm) = (common, (entry.build)(&common).expect("a bucket"));
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
            self.state.open = (0, now.mono, 0);
        }
        self.state.open.0 += self.asked.cost;
        self.state.open.2 = self.quota.rpu;
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
            Some(slices) => slices.used(words, now.mono) > 0,
            None => self.algorithm.expires(words, now) > now.mono,
        };
        self.state.used.as_ref().is_some_and(means)
    }
}
