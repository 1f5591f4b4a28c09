//! The branch for a single rule that tells nothing of what it admits: no other has to agree.

use super::opinion::Subject;
use super::{Engine, Opinion, Since};
use crate::port::{Clock, Request};
use crate::store::Reservation;
use crate::time::{Micros, Now};
use crate::verdict::Verdict;

impl Engine {
    /// Decides where there is one plain rule. A request that it admits at once needs nobody else's
    /// consent, and leaves nothing behind.
    #[inline(never)]
    pub(super) fn decide_by_one(&mut self, request: &dyn Request, clock: &dyn Clock) -> Verdict {
        self.begin(Since::New);
        if self.needs_path {
            self.match_path(request);
            if self.scratch.limits.is_empty() {
                return Verdict::pass();
            }
        }
        let subject = self.subject((0, 0), request);
        self.callers.count(true);
        let Some(subject) = subject else { return Verdict::pass() };
        let now = clock.now();
        let Some(judge) = self.rules.first_mut() else { return Verdict::pass() };
        let banned = match &mut judge.bans {
            Some(bans) if subject.is_own => bans.left(subject.key, now.mono, &mut self.redis),
            _ => 0,
        };
        if banned > 0 || subject.denied {
            return self.conclude_one(subject, banned, None, now);
        }
        let found =
            judge.store.any().take(subject.key, judge.rule.quota.cost, now, &mut self.redis);
        if found.is_none() {
            judge.counts.allowed += 1;
            return Verdict::pass();
        }
        self.conclude_one(subject, banned, found, now)
    }

    /// Concludes about a request that the one rule does not admit at once.
    #[inline(never)]
    fn conclude_one(
        &mut self,
        subject: Subject,
        banned: Micros,
        found: Option<Reservation>,
        now: Now,
    ) -> Verdict {
        let cost = self.rules.first().map_or(1, |judge| judge.rule.quota.cost);
        let mut opinion = Opinion::of(subject, cost);
        if let Some(judge) = self.rules.first_mut() {
            opinion.ban(judge, banned, &mut self.redis);
            if let Some(found) = found {
                judge.counts.overflow += u64::from(found.is_overflow());
                opinion.take(judge, found);
            }
        }
        // What was found for the request before may be a whole slot of shared data.
        self.scratch.opinions.clear();
        // It has nothing to be given back, and cannot wait for what others hold.
        if opinion.is_refusal() && opinion.loan() == 0 {
            return self.refuse_by_one(&opinion, now);
        }
        (self.scratch.now, self.scratch.since) = (now, now.mono);
        self.scratch.opinions.push(opinion);
        self.conclude()
    }
}
