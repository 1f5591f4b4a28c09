//! The verdict on a request, and its report. Accepted requests are reported only if a configuration
//! asks for it.

use std::rc::Rc;

use crate::check::{Check, InProgress};
use crate::permit::{self, QueueLine};
use crate::report::explanation::{Explained, Why};
use crate::report::jitter::Jitter;
use crate::report::{Refusal, Report};
use crate::rules::Rules;
use diana_policy::decision::Retry;
use diana_policy::time::Micros;
use diana_policy::{Accepted, LimitFields, Metric};
use diana_store::permit::Permit;

/// The decision of all rules about one request.
#[derive(Debug)]
pub enum Verdict {
    /// The request proceeds. With a report, if there are records, marks or an explanation.
    Admit(Permit, Option<Box<Report>>),
    /// The request proceeds later.
    Hold(Box<Held>),
    /// The request is refused.
    Refuse(Box<Refusal>),
    /// The request waits for replies of Redis.
    Pending {
        /// Its number in the limiter.
        id: u64,
    },
}

impl Verdict {
    /// The request proceeds without open charges and without a report.
    // A constant would be copied whole, with its padding, for every request.
    #[must_use]
    #[inline]
    pub fn pass() -> Verdict {
        Verdict::Admit(Permit::NONE, None)
    }

    /// Returns true if it is [`Verdict::pass`].
    #[must_use]
    #[inline]
    pub fn is_pass(&self) -> bool {
        matches!(self, Verdict::Admit(permit, None) if permit.is_none())
    }
}

/// A request that waits for its turn.
#[derive(Debug)]
pub struct Held {
    /// The monotonic instant at which it may leave, and not earlier.
    pub until: Micros,
    /// The line in which it moves up.
    pub line: Option<QueueLine>,
    /// Its queue positions, which are returned if the client leaves before its turn.
    pub position: Permit,
    /// Its charges that are settled when its stream ends.
    pub permit: Permit,
    /// Its report.
    pub report: Report,
}

/// Makes verdicts and their reports, by these settings.
pub(crate) struct Reporter {
    pub(crate) log_refused: bool,
    pub(crate) accepted: Accepted,
    /// The fields of accepted requests that name the limits.
    pub(crate) fields: LimitFields,
    /// A header of requests that names the rules in shadow which would have refused them.
    pub(crate) mark: Option<Rc<str>>,
    /// Headers that mark requests, each once. They are removed from every incoming request.
    pub(crate) markers: Vec<Rc<str>>,
}

impl Reporter {
    /// The verdict on a request to which no rule applies.
    pub(crate) fn unlimited(&self, progress: &mut InProgress) -> Verdict {
        let Some(explained) = progress.explained.take() else { return Verdict::pass() };
        let report = Report { explained, fields: self.fields, ..Report::default() };
        Verdict::Admit(Default::default(), Some(Box::new(report)))
    }

    /// The verdict on a request that only rules without a refusal refuse, if any, and that proceeds
    /// `delay` ticks after its check.
    #[inline]
    pub(crate) fn admit(
        &self,
        progress: &mut InProgress,
        delay: Micros,
        rules: &mut Rules,
    ) -> Verdict {
        // Before the report: this cancels the charges of rules that reserve no permits, and so
        // changes the remaining permits.
        let permit = permit::open_charges(rules, progress);
        let is_spared = rules.count_admitted(progress);
        let is_silent = !is_spared
            && delay == 0
            && progress.hot.is_empty()
            && progress.explained.is_none()
            && self.accepted == Accepted::default();
        if is_silent {
            return Verdict::Admit(permit, None);
        }
        self.admit_with_report(progress, permit, delay, rules)
    }

    /// The verdict on an admitted request that proceeds after `delay` ticks, with its report.
    #[inline(never)]
    fn admit_with_report(
        &self,
        progress: &mut InProgress,
        permit: Permit,
        delay: Micros,
        rules: &mut Rules,
    ) -> Verdict {
        let report = self.report(progress, delay, rules);
        if delay == 0 {
            return Verdict::Admit(permit, Some(Box::new(report)));
        }
        let until = progress.now.mono.saturating_add(delay);
        let (position, line) = permit::queued_charges(rules, progress);
        Verdict::Hold(Box::new(Held { until, line, position, permit, report }))
    }

    /// The report of a request that proceeds after `delay` ticks.
    fn report(&self, progress: &mut InProgress, delay: Micros, rules: &mut Rules) -> Report {
        let explained = explained(progress, rules);
        let spared = progress.spared();
        let holding = || {
            let checks = progress.checks.iter().enumerate();
            checks.max_by_key(|(_, check)| check.wait()).map(|(index, _)| index)
        };
        let by = if delay > 0 { spared.or_else(holding) } else { spared };
        let mut marks = rules.marks(progress);
        if spared.is_some() {
            marks.extend(self.shadow_mark(progress, rules));
        }
        let (fields, wall) = (self.fields, progress.now.wall);
        if self.accepted == Accepted::default() {
            let check = by.and_then(|index| progress.checks.get(index));
            let by = check.and_then(|check| rules.record(check, progress.now));
            return Report { records: Vec::new(), fields, wall, by, marks, explained };
        }
        let mut records = rules.records(progress);
        let by = match by {
            Some(index) => records.get(index).cloned(),
            None if self.accepted.filter_state => {
                records.iter().min_by_key(|record| record.scarcity()).cloned()
            }
            None => None,
        };
        if !self.accepted.headers {
            records.clear();
        }
        Report { records, fields, wall, by, marks, explained }
    }

    /// The header that names the rules in shadow which would have refused the request, if any.
    fn shadow_mark(&self, progress: &InProgress, rules: &Rules) -> Option<(Rc<str>, String)> {
        let header = self.mark.clone()?;
        let refuses = |check: &&Check| check.is_refused() && check.is_trial();
        let refusing = progress.checks.iter().filter(refuses);
        let names = refusing.filter_map(|check| Some(&*rules.list.get(check.rule)?.name));
        let names: Vec<&str> = names.collect();
        (!names.is_empty()).then(|| (header, names.join(", ")))
    }

    /// The verdict on a request that a rule refuses. Reports and counts the first such rule, with
    /// the longest retry delay of all of them.
    #[inline(never)]
    pub(crate) fn refuse(&self, progress: &mut InProgress, rules: &mut Rules) -> Verdict {
        let mut first = None;
        let mut longest = Retry::Soon;
        for (index, check) in progress.checks.iter().enumerate() {
            let Some(rule) = rules.list.get_mut(check.rule) else { continue };
            rule.counts.add(Metric::Overflow, check.reservation.is_overflow);
            rule.counts.add(Metric::Degraded, check.reservation.is_degraded());
            let Some(refused) = check.refused() else {
                let is_unasked = check.is_unasked();
                rule.counts.add(Metric::NotAsked, is_unasked);
                rule.counts.add(Metric::RefusedByOthers, !is_unasked);
                continue;
            };
            if check.marks {
                rule.counts.add(Metric::RefusedByOthers, 1);
                continue;
            }
            if check.is_shadow() {
                check.count_shadow_refusal(rule, progress.now);
                continue;
            }
            check.count_refusal(rule, progress.now);
            longest = longest.max(refused.retry);
            first = first.or(Some((index, check.rule, refused.reason)));
        }
        let Some((index, rule, reason)) = first else { return Verdict::pass() };
        let explained = explained(progress, rules);
        let (by, several) = match &*progress.checks {
            [check] => (rules.record(check, progress.now), Vec::new()),
            _ => {
                let records = rules.records(progress);
                (records.get(index).cloned(), records)
            }
        };
        let (Some(rule), Some(by)) = (rules.list.get_mut(rule), by) else {
            return Verdict::pass();
        };
        rule.counts.refuse(reason);
        let response = rule.config.response.clone();
        Verdict::Refuse(Box::new(Refusal {
            jitter: Jitter::new(response.jitter, progress.now, || {
                progress.banned_callers.or_else(|| progress.callers())
            }),
            is_logged: self.log_refused && rule.may_log(progress.now),
            response,
            several,
            by,
            retry: longest,
            wall: progress.now.wall,
            explained,
        }))
    }
}

/// The decision of each rule, or the reason why it was not evaluated. Empty unless an operator
/// requested it.
fn explained(progress: &mut InProgress, rules: &mut Rules) -> Vec<Explained> {
    let Some(skipped) = progress.explained.take() else { return Vec::new() };
    let mut explained = Vec::new();
    for check in &progress.checks {
        explained.extend(if check.is_unasked() {
            rules.skipped(check.rule, Why::NotAsked)
        } else {
            rules.record(check, progress.now).map(Explained::Decided)
        });
    }
    explained.extend(skipped);
    explained
}
