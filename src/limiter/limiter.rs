//! One decision: match, identify, check, commit.
//!
//! All rules are checked at one instant and none is charged. Only if every rule admits are all of
//! them charged, so a refused request leaves each rule as it was. A request in progress is one
//! value ([`InProgress`]): `decide` begins it, it is stored while an authority is asked, and
//! `resume` continues it.

use crate::check::InProgress;
use crate::commit::JointOutcome;
use crate::entry_watch::EntryWatch;
use crate::fleet::Fleet;
use crate::matcher::Matcher;
use crate::pending::ReadyRequest;
use crate::rules::{CompiledRule, Rules};
use crate::upkeep::Upkeep;
use crate::verdict::{Reporter, Verdict};
use diana_policy::port::{Clock, Ending, Request};
use diana_policy::time::Now;
use diana_store::permit::Permit;
use diana_store::process::Process;
use std::rc::Rc;

/// Decides about requests by the rules of one policy.
pub struct Limiter {
    pub(crate) matcher: Matcher,
    pub(crate) rules: Rules,
    pub(crate) fleet: Fleet,
    pub(crate) reporter: Reporter,
    pub(crate) entries: EntryWatch,
    pub(crate) upkeep: Upkeep,
    /// The latest request, unless it waits for replies. The next one uses its memory, since an
    /// allocation would cost 3 % of a request.
    pub(crate) progress: InProgress,
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
        let Limiter { matcher, rules, fleet, reporter, progress, .. } = self;
        progress.begin(stream);
        matcher.begin(rules, request, clock, true, progress);
        evaluate(progress, rules, fleet, reporter)
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
        let Limiter { matcher, rules, fleet, reporter, progress, .. } = self;
        progress.begin(stream);
        matcher.begin(rules, request, clock, true, progress);
        progress.explained = Some(matcher.skipped(rules, progress, request, clock));
        evaluate(progress, rules, fleet, reporter)
    }

    /// Continues a request that has its replies. Returns `None` if a question was lost: then
    /// [`Limiter::restart`] decides about the request again.
    pub fn resume(&mut self, ready: &mut ReadyRequest, now: Now) -> Option<Verdict> {
        self.rules.return_charges(now);
        self.fleet.begin(ready.waiter.id);
        let progress = &mut ready.progress;
        progress.now = now;
        let _turns = self.rules.process.map(|process| self.rules.turns(process, progress));
        let outcome = self.rules.check(progress);
        if progress.is_lost() {
            self.rules.cancel(progress);
            return None;
        }
        if self.rules.keep_bans(progress) {
            return Some(self.reporter.refuse(progress, &mut self.rules));
        }
        Some(conclude(progress, outcome, &mut self.rules, &mut self.fleet, &self.reporter))
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
        evaluate(progress, &mut self.rules, &mut self.fleet, &self.reporter)
    }

    /// Cancels a pending request after its client has left. Its charges are returned once its
    /// replies are read. Returns true if the request was still pending.
    pub fn cancel(&mut self, id: u64) -> bool {
        self.fleet.cancel(id)
    }

    /// Returns true if the bytes of requests' bodies are read at their end, for any rule.
    #[must_use]
    pub fn reads_request_bytes(&self) -> bool {
        self.rules.list.iter().any(CompiledRule::reads_request_bytes)
    }

    /// Returns true if the bytes of the request's body are read at its end, for one of its charges.
    #[must_use]
    pub fn reads_request_bytes_of(&self, permit: &mut Permit) -> bool {
        self.rules.reads_request_bytes(permit)
    }

    /// Reads the usage of a request from the headers of its response.
    pub fn on_response(&self, permit: &mut Permit, ending: &dyn Ending) {
        self.rules.on_response(permit, ending);
    }

    /// Reads the usage of a request from the trailers of its response.
    pub fn on_trailers(&self, permit: &mut Permit, ending: &dyn Ending) {
        self.rules.on_trailers(permit, ending);
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
}

/// Checks a request against the rules that apply.
fn evaluate(
    progress: &mut InProgress,
    rules: &mut Rules,
    fleet: &mut Fleet,
    reporter: &Reporter,
) -> Verdict {
    if progress.checks.is_empty() {
        return reporter.unlimited(progress);
    }
    if rules.has_bans && rules.is_banned(progress) {
        return reporter.refuse(progress, rules);
    }
    if let Some(process) = rules.process {
        return in_turns(process, progress, rules, fleet, reporter);
    }
    let outcome = rules.check(progress);
    conclude(progress, outcome, rules, fleet, reporter)
}

/// Checks and charges a request in the turns of its callers. It is a separate function, since
/// their guard would cost each request of other workers 20 instructions.
#[inline(never)]
fn in_turns(
    process: &'static Process,
    progress: &mut InProgress,
    rules: &mut Rules,
    fleet: &mut Fleet,
    reporter: &Reporter,
) -> Verdict {
    let _turns = rules.turns(process, progress);
    let outcome = rules.check(progress);
    conclude(progress, outcome, rules, fleet, reporter)
}

/// Charges a request if all rules admit it.
fn conclude(
    progress: &mut InProgress,
    checked: JointOutcome,
    rules: &mut Rules,
    fleet: &mut Fleet,
    reporter: &Reporter,
) -> Verdict {
    match rules.commit(progress, checked) {
        JointOutcome::Admitted(delay) => reporter.admit(progress, delay, rules),
        JointOutcome::Pending(delay) => fleet.send_questions(progress, delay, rules),
        JointOutcome::Refused => {
            rules.cancel(progress);
            reporter.refuse(progress, rules)
        }
    }
}
