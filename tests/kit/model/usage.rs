//! Usage that is stored separately from reservations.

use diana_policy::MAX_USED;
use diana_policy::decision::Retry;
use diana_policy::time::Now;

use super::Asked;
use super::rule_state::Look;

impl Look {
    /// Adds newly known usage at the instant of its charge, as long as that counts.
    pub(super) fn count(&mut self, now: Now) {
        let Some((used, permits)) = self.state.used.as_mut().zip(self.asked.counted) else {
            return;
        };
        let Asked { receipt, debt, arrears, .. } = self.asked;
        let within = permits.saturating_sub(debt);
        if let Some(slices) = self.slices {
            slices.charge(used, arrears, now.mono);
            if permits > 0 {
                slices.charge_late(used, within, receipt, now.mono);
                slices.charge(used, debt, now.mono);
            }
        } else {
            let words = &self.state.words;
            let is_in_force = words[1] > 0 && self.algorithm.expires(words, now) > now.mono;
            let is_same = is_in_force && (used[0], used[2]) == (words[0], words[2]);
            let is_own = permits > 0 && is_in_force && self.algorithm.receipt(words) == receipt;
            let sum = if is_same { used[1] } else { 0 }
                + if is_own { within } else { 0 }
                + if permits > 0 { debt } else { 0 }
                + arrears;
            used.copy_from_slice(&[words[0], sum.min(MAX_USED), words[2]]);
        }
    }

    /// The retry delay of a refusal. [`Retry::Soon`] if the usage alone would admit the request.
    pub(super) fn unless_reserved(&self, now: Now, cost: u64, retry: Retry) -> Retry {
        let fits = |words: &Vec<u64>| self.algorithm.balance(words, now).remaining >= cost;
        match retry {
            Retry::After(_) if self.state.used.as_ref().is_some_and(fits) => Retry::Soon,
            other => other,
        }
    }

    /// Returns true if the usage has not expired.
    pub(super) fn has_used(&self, now: Now) -> bool {
        let means = |words: &Vec<u64>| match self.slices {
            Some(slices) => slices.used(words, now.mono) > 0,
            None => self.algorithm.expires(words, now) > now.mono,
        };
        self.state.used.as_ref().is_some_and(means)
    }
}
