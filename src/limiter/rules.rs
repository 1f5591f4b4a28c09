//! All rules of a limiter: their checks, and their part in reports.

use std::rc::Rc;

use crate::check::{Check, InProgress};
use crate::report::Record;
use crate::report::explanation::{Explained, Why};
use crate::rule::{ChargePhase, CompiledRule};
use diana_policy::Metric;
use diana_policy::decision::Retry;
use diana_policy::time::{Micros, Now};
use diana_store::CheckOutcome;
use diana_store::permit::CancelQueue;
use diana_store::process::{Process, Turns};
use diana_store::refusal::Reason;

/// The outcome of all rules together: of their checks, and then of the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JointOutcome {
    /// Every rule admits the request, and has charged it after a commit. It may proceed this many
    /// ticks after its check.
    Admitted(Micros),
    /// A rule refuses. Only an authority may have charged its rules; the other rules are not
    /// charged.
    Refused,
    /// An authority must be asked. Other rules hold the request for this many ticks.
    Pending(Micros),
}

/// All rules, in the order of the document.
pub(crate) struct Rules {
    pub(crate) list: Vec<CompiledRule>,
    /// The phases of a commit in which any of them is charged, in order.
    pub(crate) phases: Vec<ChargePhase>,
    /// Whether a caller may be banned.
    pub(crate) has_bans: bool,
    /// Whether any rule settles its reservations.
    pub(crate) settles: bool,
    /// Charges of requests that have ended, to be cancelled or settled.
    pub(crate) returned: Rc<CancelQueue>,
    /// Whether there is an authority outside of the gateway.
    pub(crate) has_backend: bool,
    /// The process with the callers of `gateway` rules, if workers take turns for them.
    pub(crate) process: Option<&'static Process>,
}

impl Rules {
    /// Waits for the turns of a request's callers, from its check to its charge.
    #[inline]
    pub(crate) fn turns(&self, process: &'static Process, progress: &InProgress) -> Turns {
        let number = |check: &Check| self.list.get(check.rule)?.turn(check.key());
        process.turns(progress.checks.iter().filter_map(number))
    }

    /// Checks a request against every rule, for the first time or again. Pending checks read the
    /// replies; the others are repeated at the present instant.
    pub(crate) fn check(&mut self, progress: &mut InProgress) -> JointOutcome {
        let is_full = self.settles && self.returned.is_full();
        let (mut delay, mut is_pending, mut is_refused) = (0, false, false);
        let InProgress { checks, replies, .. } = progress;
        for check in checks {
            let Some(rule) = self.list.get_mut(check.rule) else { continue };
            check.check(rule, replies);
            if is_full && rule.is_in_flight() && !check.is_refused() {
                // Without memory for its charge, the slot could not be freed.
                check.cancel(rule);
                check.refuse_with(Reason::Busy, Retry::Soon, Some(0));
            }
            match check.reservation.outcome {
                // A rule in shadow neither holds nor refuses.
                CheckOutcome::Admitted { wait, .. } if !check.is_shadow() => {
                    delay = delay.max(wait)
                }
                CheckOutcome::Refused(_) if !check.is_shadow() => is_refused = true,
                CheckOutcome::Pending => is_pending = true,
                _ => {}
            }
        }
        match (is_refused, is_pending) {
            (true, _) => JointOutcome::Refused,
            (false, true) => JointOutcome::Pending(delay),
            (false, false) => JointOutcome::Admitted(delay),
        }
    }

    /// Returns true if any rule bans the request's caller. Then drops the checks of all other
    /// rules.
    #[inline(never)]
    pub(crate) fn is_banned(&mut self, progress: &mut InProgress) -> bool {
        for check in &mut progress.checks {
            let Some(rule) = self.list.get_mut(check.rule) else { continue };
            if check.may_be_banned(rule)
                && let Some(bans) = &mut rule.bans
            {
                let left = bans.left(check.key(), progress.now.mono);
                // The rule may decide without the authority.
                check.is_ban_asked = rule.is_in_backend;
                check.refuse_banned(rule, left);
            }
        }
        self.keep_bans(progress)
    }

    /// If any rule bans the caller, drops the checks of all others, and cancels their charges.
    /// Returns true if so.
    pub(crate) fn keep_bans(&mut self, progress: &mut InProgress) -> bool {
        let any = progress.checks.iter().any(Check::is_ban);
        if any {
            self.cancel(progress);
            for check in progress.checks.iter().filter(|check| !check.is_ban()) {
                if let Some(rule) = self.list.get_mut(check.rule) {
                    rule.counts.add(Metric::NotAsked, 1);
                }
            }
            if let Some(explained) = &mut progress.explained {
                let others = progress.checks.iter().filter(|check| !check.is_ban());
                let others = others.filter_map(|check| self.skipped(check.rule, Why::Banned));
                explained.splice(..0, others);
            }
            let has_jitter = |check: &Check| {
                let rule = self.list.get(check.rule).filter(|_| check.is_ban());
                rule.is_some_and(|rule| rule.config.response.jitter > 0)
            };
            if progress.checks.iter().any(has_jitter) {
                progress.banned_callers = progress.callers();
            }
            progress.checks.retain(Check::is_ban);
        }
        any
    }

    /// Explains that a rule was not evaluated.
    pub(crate) fn skipped(&self, rule: usize, why: Why) -> Option<Explained> {
        Some(Explained::Skipped { rule: self.list.get(rule)?.name.clone(), why })
    }

    /// Cancels the charges of a request that does not proceed.
    pub(crate) fn cancel(&mut self, progress: &mut InProgress) {
        for check in progress.checks.iter_mut().rev() {
            if let Some(rule) = self.list.get_mut(check.rule) {
                check.cancel(rule);
            }
        }
    }

    /// Reads the replies about a request after its client has left, and cancels the charges.
    pub(crate) fn abandon(&mut self, mut progress: InProgress, now: Now) {
        let InProgress { checks, replies, .. } = &mut progress;
        for check in checks.iter_mut().filter(|it| it.reservation.is_pending()) {
            check.reservation.now = now;
            if let Some(rule) = self.list.get_mut(check.rule) {
                check.check(rule, replies);
            }
        }
        self.cancel(&mut progress);
    }

    /// Counts an admitted request. Returns true if a rule that neither refuses nor holds requests
    /// would have.
    #[inline]
    pub(crate) fn count_admitted(&mut self, progress: &InProgress) -> bool {
        let mut is_spared = false;
        for check in &progress.checks {
            let Some(rule) = self.list.get_mut(check.rule) else { continue };
            rule.counts.add(Metric::Overflow, check.reservation.is_overflow);
            rule.counts.add(Metric::Degraded, check.reservation.is_degraded());
            if check.is_shadow() {
                is_spared |= check.count_in_shadow(rule, progress.now);
            } else {
                rule.counts.admit(check.wait_without_shadow());
            }
            if rule.config.near.is_some() && check.is_near(rule) {
                rule.counts.add(Metric::Near, 1);
            }
        }
        is_spared
    }

    /// The headers that mark a request: with the rules of hot callers, and with the values of rules
    /// whose limit it exceeds. If several rules have the same header, the last one counts.
    pub(crate) fn marks(&self, progress: &InProgress) -> Vec<(Rc<str>, String)> {
        let of_hot = |&rule: &usize| {
            let rule = self.list.get(rule)?;
            let header = rule.hot.as_ref()?.hot().header.clone()?;
            Some((header, String::from(&*rule.name)))
        };
        let of_over = |check: &Check| {
            let over = self.list.get(check.rule)?.config.over.as_ref()?;
            Some((over.mark.clone(), over.value.clone()))
        };
        let exceeded = progress.checks.iter().filter(|check| check.is_over());
        let all = progress.hot.iter().filter_map(of_hot).chain(exceeded.filter_map(of_over));
        let mut marks: Vec<(Rc<str>, String)> = Vec::new();
        for (header, value) in all {
            marks.retain(|(other, _)| *other != header);
            marks.push((header, value));
        }
        marks
    }

    /// The decisions of all rules that applied.
    pub(crate) fn records(&mut self, progress: &InProgress) -> Vec<Record> {
        progress.checks.iter().filter_map(|check| self.record(check, progress.now)).collect()
    }

    /// The decision of one rule at `now`.
    pub(crate) fn record(&mut self, check: &Check, now: Now) -> Option<Record> {
        let rule = self.list.get_mut(check.rule)?;
        Some(check.record(rule, self.has_backend, now))
    }
}
