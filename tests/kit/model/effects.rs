//! Returns of charges.

use diana_policy::settlement::Settlement;
use diana_policy::time::Now;

use super::rule_state::Look;
use super::{Asked, LONG, TERM};

impl Look {
    pub(super) fn take_back(&mut self, now: u64) {
        let Asked { receipt, term, block, left, .. } = self.asked;
        let elsewhere = self.is_window() && self.algorithm.receipt(&self.state.words) != receipt;
        let counted = !elsewhere && self.state.terms.comes_in(term, block, left);
        if let Some(bucket) = self.bucket() {
            // The store counts the permits as available until the end of their last term.
            let since = if block > 0 { (term * TERM / LONG + 2) * LONG } else { receipt };
            if block == 0 || counted || since <= now {
                bucket.take_back(&mut self.state, left, since);
            }
            return;
        }
        let words = &self.state.words;
        if self.holds {
            let back = self.comes_back(now);
            let [low, high, at] = *self.state.words else { panic!("no debt") };
            let debt = (u128::from(high) << 64 | u128::from(low)).saturating_sub(back);
            self.new.copy_from_slice(&[debt as u64, (debt >> 64) as u64, at]);
        } else if self.slices.is_some_and(|slices| receipt > slices.at(now)) {
            return;
        } else {
            let refund = Settlement::refund(receipt, left);
            self.algorithm.settle(words, Now::default(), &refund, &mut self.new);
        }
        self.keep();
    }

    /// The returnable permits of a charge: none if a later request may still be in the queue,
    /// otherwise those that cannot have drained since.
    fn comes_back(&self, now: u64) -> u128 {
        let Asked { receipt, term, left, .. } = self.asked;
        let (rpu, period) = (u128::from(self.quota.rpu), u128::from(self.quota.period()));
        let turns = self.quota.rpu << 22;
        let [low, high, at] = *self.state.words else { panic!("no debt") };
        if turns == 0 {
            return 0;
        }
        let others = (self.turn_of(&self.state.words) + turns - receipt % turns) % turns;
        let all = u128::from(left) * period;
        let Some(burst) = self.burst.filter(|_| others > 0) else {
            return if others == 0 { all } else { 0 };
        };
        let debt = u128::from(high) << 64 | u128::from(low);
        let ticks = |since: u64, until: u64| u128::from(until.saturating_sub(since));
        if debt.saturating_sub(ticks(at, now) * rpu) > u128::from(burst) * period {
            return 0;
        }
        let above = u128::from(others + 1) * period;
        let below = (debt / period * period).saturating_sub(above).min(all);
        let fastest = u128::from(self.quota.fastest());
        all.saturating_sub(ticks(term.saturating_mul(TERM), at) * fastest).max(below)
    }

    /// The end of the queue in whole permits. Any later charge changes it, even if other rules
    /// delayed that request and it has left.
    pub(super) fn turn_of(&self, words: &[u64]) -> u64 {
        let [low, high, at] = *words else { panic!("no debt: {words:?}") };
        let amount = u128::from(high) << 64 | u128::from(low);
        let end = u128::from(at) * u128::from(self.quota.rpu) + amount;
        let turn = end / u128::from(self.quota.period());
        (turn % (u128::from(self.quota.rpu.max(1)) << 22)) as u64
    }
}
