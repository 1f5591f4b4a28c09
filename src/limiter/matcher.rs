//! Which rules apply to a request, and what each of them says.

use crate::check::{Check, CheckOutcome, Refused, RuleCaller};
use crate::limiter::{CompiledRule, Limiter, Scratch};
use diana_policy::Absent;
use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::path::Path;
use diana_policy::port::{Pseudo, Request};
use diana_request::identity::caller::Caller;
use diana_request::matching::{except, matcher};

impl Limiter {
    /// Fills the scratch with the entries that may apply.
    pub(crate) fn match_path(&mut self, request: &dyn Request) {
        let raw = request.pseudo(Pseudo::Path);
        // Requests without a path fall under the root.
        self.find_limits(raw.as_deref().filter(|raw| *raw != b"*").unwrap_or(b"/"));
    }

    pub(crate) fn find_limits(&mut self, path: &[u8]) {
        let Scratch { path: plain, limits, .. } = &mut self.scratch;
        limits.clear();
        let path = Path::of(path);
        if self.entries.has_exemptions {
            plain.clear();
            plain.extend_from_slice(path.only_reading().as_deref().unwrap_or_default());
        }
        self.entries.paths.covering(path, limits);
    }

    /// Notes which rules apply to this request.
    pub(crate) fn apply_all(&mut self, request: &dyn Request) {
        for place in 0..self.scratch.limits.len() {
            let Some(limit) =
                self.scratch.limits.get(place).and_then(|&at| self.entries.limits.get(at))
            else {
                continue;
            };
            if !matcher::holds(&limit.matcher, request)
                || self.entries.has_exemptions
                    && except::covers(&limit.except, request, &self.scratch.path)
            {
                continue;
            }
            for rule in limit.rules.clone() {
                self.apply(rule, request);
            }
        }
    }

    /// Notes that a rule applies to this request, if it does.
    fn apply(&mut self, number: usize, request: &dyn Request) {
        let Some(CompiledRule { rule, teller, plans, .. }) = self.rules.get(number) else { return };
        if self.entries.has_exemptions && except::covers(&rule.except, request, &self.scratch.path)
        {
            return;
        }
        let told = teller.as_ref().map(|teller| teller.cost(request));
        let mut cost = told.unwrap_or(rule.quota.cost);
        let (mut plan, mut is_suspended) = (0, false);
        if plans.is_some() {
            let Some(chosen) = self.choose(number, request) else { return };
            (plan, is_suspended) = (chosen.plan, chosen.is_suspended);
            cost = told.or(chosen.cost).unwrap_or(cost);
        }
        if let Some(mut subject) = self.subject((number, plan), request) {
            subject.denied |= is_suspended;
            self.scratch.checks.push(Check::of(subject, cost));
        }
    }

    /// Whom a rule counts this request under, by one of its plans; nobody if it leaves out callers without a name.
    #[inline(always)]
    pub(crate) fn subject(
        &mut self,
        (number, plan): (usize, u32),
        request: &dyn Request,
    ) -> Option<RuleCaller> {
        let CompiledRule { rule, actor, hot, .. } = self.rules.get_mut(number)?;
        let caller = self.callers.of(*actor, request);
        let (key, percentile) = match (caller, rule.absent) {
            (Caller::Known { key, percentile }, _) => (key, percentile),
            (Caller::Absent, Absent::Skip) => return None,
            (Caller::Shared, _) | (Caller::Absent, _) => (Key::SHARE, 0),
        };
        let subject = RuleCaller {
            rule: number,
            key,
            plan,
            shadow: self.reports.shadow || rule.shadow || percentile >= rule.enforce,
            is_own: matches!(caller, Caller::Known { .. }),
            denied: caller == Caller::Absent && rule.absent == Absent::Deny,
        };
        // Counted once, whatever will be decided.
        if let Some(spotter) = hot
            && subject.is_own
            && !self.scratch.is_counted
            && spotter.see(key)
        {
            self.mark(number, key, request);
        }
        Some(subject)
    }

    /// Has every rule judge the request.
    pub(crate) fn judge(&mut self) {
        let now = self.scratch.now;
        let is_full = self.kinds.settles && self.freed.is_full();
        for check in &mut self.scratch.checks {
            let Some(judge) = self.rules.get_mut(check.rule) else { continue };
            let is_place = || judge.settler.as_ref().is_some_and(|settler| settler.is_place());
            let CheckOutcome::Nothing = check.says else { continue };
            if is_full && is_place() {
                // Of what there is no memory for nobody could give a place back.
                check.says = CheckOutcome::Refuses(Refused::finally(Retry::Soon, false, Some(0)));
                continue;
            }
            let found = judge.store.check(check.account(), check.cost, now);
            judge.counts.overflow += u64::from(found.is_overflow());
            check.take(judge, found);
        }
    }
}
