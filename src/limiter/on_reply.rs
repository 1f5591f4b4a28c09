//! What a rule says once Redis has replied.

use crate::check::{Basis, Check, CheckOutcome, Grant, Refused};
use crate::limiter::CompiledRule;
use diana_policy::time::{Micros, Now};
use diana_redis::protocol::RuleReply;

impl Check {
    /// Takes what Redis replied: that the request may leave after `wait`, decided at an instant, asked at
    /// another and answered by now.
    pub(crate) fn hear(
        &mut self,
        judge: &mut CompiledRule,
        reply: &RuleReply,
        (wait, at): (Option<Micros>, Micros),
        (sent, now): (Now, Now),
    ) {
        judge.counts.overflow += u64::from(reply.overflow);
        let Some(store) = judge.in_redis(self.plan) else { return };
        let wait = wait.filter(|_| reply.retry.is_none());
        let charged = if wait.is_some() { self.cost } else { 0 };
        let receipt = store.receive(self.key, reply, (self.cost, charged), (sent, now));
        // What this worker has on lease is still the caller's.
        let left = store.left(self.key).unwrap_or(reply.remaining);
        self.is_own &= !reply.overflow;
        self.says = match (reply.retry, wait) {
            (Some(retry), _) => CheckOutcome::Refuses(Refused::new(
                retry,
                reply.is_outstanding,
                self.is_own,
                Some(left),
            )),
            (None, Some(wait)) => {
                let wait = if store.holds() { wait } else { 0 };
                let term = reply.term;
                let until = at.saturating_add(wait);
                let by = Basis::Redis(Grant { until, receipt, term, left });
                CheckOutcome::Admits { wait: until.saturating_sub(now.mono), by }
            }
            (None, None) => CheckOutcome::Admits { wait: 0, by: Basis::Agreed(left) },
        };
    }

    /// Redis was asked in vain.
    pub(crate) fn hear_nothing(&mut self, judge: &mut CompiledRule, now: Now) {
        self.alone = true;
        if let Some(store) = judge.in_redis(self.plan) {
            store.complete(self.key, None, now);
        }
    }

    /// CheckOutcome what it says as of `now`.
    pub(crate) fn catch_up(&mut self, judge: &mut CompiledRule, now: Now) {
        match &mut self.says {
            CheckOutcome::Nothing => self.check(judge, now),
            CheckOutcome::Admits { wait, by: Basis::Redis(grant) } => {
                *wait = grant.until.saturating_sub(now.mono);
            }
            CheckOutcome::Admits { .. }
            | CheckOutcome::Pending
            | CheckOutcome::Refuses(_)
            | CheckOutcome::Bans(_)
            | CheckOutcome::Unavailable(_) => {}
        }
    }
}
