//! One decision: match, identify, check, commit.
//!
//! All rules are checked at one instant and none is charged. Only if every rule admits are all of
//! them charged, so a refused request leaves each rule as it was. A request in progress is one
//! value ([`InProgress`]): `decide` creates it, it is stored while an authority is asked, and
//! `resume` continues it.

use crate::check::InProgress;
use crate::commit::Committed;
use crate::fleet::Fleet;
use crate::matcher::Matcher;
use crate::pending::ReadyRequest;
use crate::rules::Rules;
use crate::upkeep::Upkeep;
use crate::verdict::{Reporter, Verdict};
use diana_policy::port::{Clock, Ending, Request};
use diana_policy::time::Now;
use diana_store::permit::Permit;
use std::rc::Rc;

/// Decides about requests by the rules of one policy.
pub struct Limiter {
    pub(crate) matcher: Matcher,
    pub(crate) rules: Rules,
    pub(crate) fleet: Fleet,
    pub(crate) reporter: Reporter,
    pub(crate) upkeep: Upkeep,
}

impl Limiter {
    /// Headers that mark requests. They are removed from every incoming request.
    #[must_use]
    pub fn markers(&self) -> &[Rc<str>] {
        &self.reporter.markers
    }

    /// Returns true if it decides about no request.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        self.matcher.is_disabled
    }

    /// Returns true if more of a request is read than its path.
    #[must_use]
    pub fn reads_headers(&self) -> bool {
        self.matcher.reads_headers
    }

    /// Decides about the request of a stream, by the host's number, and charges for it if it is
    /// admitted. The clock is read once, and only if a rule applies.
    pub fn decide(&mut self, request: &dyn Request, stream: u32, clock: &dyn Clock) -> Verdict {
        self.prepare(clock);
        let mut progress = InProgress::new(stream, std::mem::take(&mut self.matcher.spare));
        self.matcher.begin(&mut self.rules, request, clock, true, &mut progress);
        let verdict = self.evaluate(&mut progress);
        progress.checks.clear();
        self.matcher.spare = progress.checks;
        verdict
    }

    /// As [`Limiter::decide`]; the verdict explains to an operator what each rule decided, or why
    /// it does not apply.
    pub fn decide_explained(
        &mut self,
        request: &dyn Request,
        stream: u32,
        clock: &dyn Clock,
    ) -> Verdict {
        self.prepare(clock);
        let mut progress = InProgress::new(stream, Vec::new());
        self.matcher.begin(&mut self.rules, request, clock, true, &mut progress);
        let skipped = self.matcher.skipped(&mut self.rules, &mut progress, request, clock);
        progress.explained = Some(skipped);
        self.evaluate(&mut progress)
    }

    /// Continues a request that has its replies. Returns `None` if a question was lost: then
    /// [`Limiter::restart`] decides about the request again.
    pub fn resume(&mut self, ready: &mut ReadyRequest, now: Now) -> Option<Verdict> {
        self.rules.return_charges(now);
        self.fleet.begin(ready.waiter.id);
        let progress = &mut ready.progress;
        progress.now = now;
        self.rules.check(progress);
        if progress.is_lost() {
            self.rules.cancel(progress);
            return None;
        }
        if self.rules.keep_bans(progress) {
            return Some(self.reporter.refuse(progress, &mut self.rules));
        }
        Some(self.conclude(progress))
    }

    /// Decides again about a request that [`Limiter::resume`] did not decide.
    pub fn restart(
        &mut self,
        ready: &mut ReadyRequest,
        request: &dyn Request,
        clock: &dyn Clock,
    ) -> Verdict {
        self.prepare(clock);
        let progress = &mut ready.progress;
        progress.checks.clear();
        progress.now = Now::default();
        self.matcher.begin(&mut self.rules, request, clock, false, progress);
        self.evaluate(progress)
    }

    /// Cancels a pending request after its client has left. Its charges are returned once its
    /// replies are read. Returns true if the request was still pending.
    pub fn cancel(&mut self, id: u64) -> bool {
        self.fleet.cancel(id)
    }

    /// Reads the usage of a request from the headers of its response.
    pub fn on_response(&self, permit: &mut Permit, ending: &dyn Ending) {
        self.rules.on_response(permit, ending);
    }

    /// Settles the charges of a request at the end of its stream.
    pub fn finish(&mut self, permit: Permit, ending: &dyn Ending, now: Now) {
        self.rules.finish(permit, ending, now);
    }

    /// Cancels and settles the charges of requests that have ended. Due before another worker or
    /// limiter with the same state checks a request.
    pub fn return_charges(&mut self, now: Now) {
        self.rules.return_charges(now);
    }

    #[inline]
    fn prepare(&mut self, clock: &dyn Clock) {
        if self.rules.returned.is_any() {
            self.rules.return_charges(clock.now());
        }
        self.fleet.prepare(&mut self.matcher.callers, false);
    }

    fn evaluate(&mut self, progress: &mut InProgress) -> Verdict {
        if progress.checks.is_empty() {
            return self.reporter.unlimited(progress);
        }
        if self.rules.has_bans && self.rules.is_banned(progress) {
            return self.reporter.refuse(progress, &mut self.rules);
        }
        self.rules.check(progress);
        self.conclude(progress)
    }

    /// Charges a request if all rules admit it.
    fn conclude(&mut self, progress: &mut InProgress) -> Verdict {
        match self.rules.commit(progress) {
            Committed::Admitted(delay) => self.reporter.admit(progress, delay, &mut self.rules),
            Committed::Pending(delay) => {
                self.fleet.send_questions(progress, delay, &mut self.rules)
            }
            Committed::Refused => {
                self.rules.cancel(progress);
                self.reporter.refuse(progress, &mut self.rules)
            }
        }
    }
}
