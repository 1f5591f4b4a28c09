//! How a request is refused.

use crate::check::{Check, CheckOutcome, Refused};
use crate::limiter::{CompiledRule, Limiter};
use crate::report::{Record, Refusal};
use crate::verdict::Verdict;
use diana_policy::decision::Retry;
use diana_policy::key::KeyHasher;
use diana_policy::time::{Micros, Now, SECOND};

impl Limiter {
    /// The verdict on a request that a rule refuses: the first such rule is named and counted, and
    /// the longest wait counts. Nothing is charged.
    pub(crate) fn refuse(&mut self) -> Verdict {
        let mut first = None;
        let mut longest = Retry::Soon;
        for (place, check) in self.scratch.checks.iter().enumerate() {
            let outcome = check.outcome();
            let (Some(retry), Some(judge)) = (outcome.retry(), self.rules.get_mut(check.rule))
            else {
                continue;
            };
            if check.shadow {
                judge.counts.refuse(outcome, true);
                continue;
            }
            judge.note_refusal(check, self.scratch.now);
            longest = longest.max(retry);
            first = first.or(Some((place, check.rule)));
        }
        let Some((place, rule)) = first else { return Verdict::pass() };
        let explained = self.explained();
        let (several, by) = match self.scratch.checks.len() {
            1 => (Vec::new(), self.record(place)),
            _ => {
                let records = self.records();
                let by = records.get(place).cloned();
                (records, by)
            }
        };
        let (Some(judge), Some(by)) = (self.rules.get_mut(rule), by) else {
            return Verdict::pass();
        };
        let mut refusal = judge.refusal(by, self.reports.log_refused, self.scratch.now);
        (refusal.several, refusal.explained, refusal.retry) = (several, explained, longest);
        Verdict::Refuse(refusal)
    }
}

impl CompiledRule {
    /// Counts a refusal towards a ban of the caller, if it is one that does.
    fn note_refusal(&mut self, check: &Check, now: Now) {
        if let CheckOutcome::Refuses(Refused { is_outstanding: true, .. }) = check.says {
            self.counts.lent += 1;
        }
        if let Some(bans) = &mut self.bans
            && let CheckOutcome::Refuses(Refused { counts: true, .. }) = check.says
            && !self.settler.as_ref().is_some_and(|settler| settler.bans())
        {
            bans.refused(check.key, now.mono);
        }
    }

    /// The answer to a request that this rule is the first to refuse, which it counts.
    fn refusal(&mut self, by: Record, log_refused: bool, now: Now) -> Refusal {
        self.counts.refuse(by.outcome, false);
        let is_logged = log_refused && self.may_log(now);
        let response = self.rule.response.clone();
        let jitter = jitter(response.jitter, by.caller.hash, now);
        let retry = by.outcome.retry().unwrap_or(Retry::Soon);
        let (several, explained) = (Vec::new(), Vec::new());
        Refusal { response, several, by, retry, jitter, is_logged, explained }
    }

    /// Whether a second has passed since this rule's last line.
    fn may_log(&mut self, now: Now) -> bool {
        let due = self.logged.is_none_or(|last| now.mono.saturating_sub(last) >= SECOND);
        if due {
            self.logged = Some(now.mono);
        }
        due
    }
}

/// Ticks to wait more, up to `most`, the same for a caller's requests in one second.
fn jitter(most: Micros, caller: u64, now: Now) -> Micros {
    if most == 0 {
        return 0;
    }
    let mut hasher = KeyHasher::public();
    hasher.part(0, &caller.to_le_bytes());
    hasher.part(1, &(now.wall / SECOND).to_le_bytes());
    hasher.finish().hash % (most + 1)
}
