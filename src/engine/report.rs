//! What the engine tells about a decision. Nothing here is on the way of an accepted request
//! unless a configuration asks for it.

use super::{Engine, Judge, Opinion};
use crate::decision::Retry;
use crate::time::{Now, SECOND};
use crate::verdict::{Refusal, Standing, Verdict, fields, refusal_fields, state};

impl Engine {
    /// The verdict on a request that every rule admits or judges in shadow only.
    pub(super) fn admit(&self) -> Verdict {
        let shadowed = self.scratch.opinions.iter().find(|opinion| opinion.refuses.is_some());
        let reported = match shadowed {
            Some(shadowed) => Some(("shadow", shadowed)),
            None if self.accepted.filter_state => self.nearest().map(|near| ("admitted", near)),
            None => None,
        };
        let fields = if self.accepted.headers { fields(&self.standings()) } else { Vec::new() };
        let state = reported.and_then(|(outcome, opinion)| self.state(outcome, opinion));
        Verdict::Admit { fields, state }
    }

    /// The verdict on a request that a rule refuses: the first such rule is named and counted, and
    /// the longest wait counts. Nothing is charged.
    pub(super) fn refuse(&mut self) -> Verdict {
        let mut first = None;
        let mut longest = Retry::After(0);
        for opinion in &self.scratch.opinions {
            let (Some(retry), Some(judge)) = (opinion.refuses, self.rules.get_mut(opinion.rule))
            else {
                continue;
            };
            if opinion.shadow {
                judge.counts.shadow_refused += 1;
                continue;
            }
            longest = longest.max(retry);
            first = first.or(Some(opinion));
        }
        let Some((opinion, state)) =
            first.and_then(|opinion| Some((opinion, self.state("refused", opinion)?)))
        else {
            return Verdict::PASS;
        };
        let mut fields = fields(&self.standings());
        fields.extend(refusal_fields(longest));
        let number = opinion.rule;
        let Some(judge) = self.rules.get_mut(number) else { return Verdict::PASS };
        judge.counts.refused += 1;
        let log = (self.log_refused && judge.may_log(self.scratch.now)).then(|| state.clone());
        Verdict::Refuse(Refusal { response: judge.rule.response.clone(), fields, state, log })
    }

    /// The rule that is nearest to refusing.
    fn nearest(&self) -> Option<&Opinion> {
        self.scratch.opinions.iter().min_by_key(|opinion| self.remaining(opinion))
    }

    /// Every rule that shows in client headers, as it stands.
    fn standings(&self) -> Vec<Standing<'_>> {
        let shown = |opinion: &&Opinion| {
            !opinion.shadow && self.rules.get(opinion.rule).is_some_and(|judge| judge.rule.expose)
        };
        let standing = |opinion: &Opinion| {
            let rule = &self.rules.get(opinion.rule)?.rule;
            Some(Standing {
                rule: &rule.name,
                policy: rule.algorithm.policy(),
                remaining: self.remaining(opinion),
                retry: opinion.refuses,
            })
        };
        self.scratch.opinions.iter().filter(shown).filter_map(standing).collect()
    }

    /// Permits left after the decision.
    fn remaining(&self, opinion: &Opinion) -> u64 {
        let Some(judge) = self.rules.get(opinion.rule) else { return 0 };
        let now = judge.table.judging(self.scratch.now);
        let charged = self.scratch.states.get(opinion.state.clone()).unwrap_or_default();
        let refused = self.scratch.opinions.iter().any(Opinion::is_refusal);
        let state = if refused || opinion.refuses.is_some() {
            judge.table.state(opinion.key, opinion.place)
        } else {
            charged
        };
        judge.rule.algorithm.remaining(state, now)
    }

    fn state(&self, outcome: &str, opinion: &Opinion) -> Option<String> {
        let rule = &self.rules.get(opinion.rule)?.rule;
        let mode = if opinion.shadow { "shadow" } else { "enforced" };
        Some(state(outcome, &rule.name, mode, opinion.refuses, opinion.key.hash))
    }
}

impl Judge {
    /// Whether a second has passed since this rule's last line.
    fn may_log(&mut self, now: Now) -> bool {
        let due = self.logged.is_none_or(|last| now.mono.saturating_sub(last) >= SECOND);
        if due {
            self.logged = Some(now.mono);
        }
        due
    }
}
