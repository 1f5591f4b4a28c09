//! Usage for operators, and resets.

use diana_policy::settlement::Settlement;
use diana_policy::time::Now;
use diana_redis::protocol::RuleReply;

use super::rule_state::{Look, NOTHING};
use super::{REPORT, RESET, Receipts};

impl Look {
    /// Permits reserved by open requests, if usage is stored separately.
    fn reserved(&self, now: Now) -> u64 {
        match &self.state.used {
            Some(used) => {
                let all = self.charged(&self.state.words, now);
                all.saturating_sub(self.charged(used, now))
            }
            None => 0,
        }
    }

    /// Charged permits.
    fn charged(&self, words: &[u64], now: Now) -> u64 {
        match (self.bucket(), self.slices) {
            (Some(bucket), _) => {
                let debt = bucket.debt(words, now.mono).div_ceil(bucket.unit.into());
                u64::try_from(debt).expect("it is no more than that")
            }
            (_, Some(slices)) => slices.used(words, now.mono),
            _ if self.algorithm.expires(words, now) > now.mono => words[1],
            _ => 0,
        }
    }

    /// Ticks until the whole charge expires.
    fn ends(&self, now: Now) -> u64 {
        let counts = |words: &Vec<u64>| self.charged(words, now) > 0;
        let is_used = self.state.used.as_ref().is_some_and(counts);
        if (self.slices.is_some() || self.is_window()) && !is_used && !counts(&self.state.words) {
            return 0;
        }
        self.state.ends_by(self.short, &*self.algorithm).saturating_sub(now.mono)
    }

    fn lent(&self) -> u64 {
        if self.state.used.is_some() { 0 } else { self.state.terms.out() }
    }

    /// Resets the usage, if requested. Outstanding leases and reservations stay charged.
    pub(super) fn reset(&mut self, now: Now) {
        if self.asked.what != RESET {
            return;
        }
        self.changed = true;
        if self.state.used.is_some() {
            return self.reset_used(now);
        }
        self.state.words = self.only(self.lent(), now);
    }

    /// Reservations stay at the instant of their charge.
    fn reset_used(&mut self, now: Now) {
        let Some(used) = &mut self.state.used else { return };
        match self.slices {
            Some(slices) => slices.take_away(&mut self.state.words, used, now.mono),
            None => self.state.words[1] = self.state.words[1].saturating_sub(used[1]),
        }
        used.fill(0);
    }

    /// The state with this charge only.
    fn only(&self, permits: u64, now: Now) -> Vec<u64> {
        let nobody = vec![0; self.state.words.len()];
        let mut words = nobody.clone();
        match self.slices {
            Some(slices) => slices.charge(&mut words, permits, now.mono),
            None if permits > 0 => {
                self.algorithm.settle(&nobody, now, &Settlement::debit(permits), &mut words);
            }
            None => {}
        }
        words
    }

    /// The reply to an operator.
    pub(super) fn usage(&self, now: Now) -> (RuleReply, Receipts) {
        let (remaining, block) = (self.left(now), self.reserved(now));
        let charged = self.charged(&self.state.words, now);
        let reply = RuleReply { remaining, block, charged, ..NOTHING };
        let spend_by = self.algorithm.spend_by(&self.state.words, now).unwrap_or(u64::MAX);
        // A report learns when the window ends, which is before its latest end.
        let most = if self.asked.what == REPORT { spend_by - now.mono } else { u64::MAX };
        (reply, Receipts { cost: self.lent(), lease: self.ends(now).min(most) })
    }
}
