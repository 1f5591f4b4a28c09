//! Which rules apply to a request, and what each of them says.

use super::{Engine, Judge, Opinion};
use crate::caller::Caller;
use crate::decision::Decision;
use crate::key::Key;
use crate::policy::Absent;
use crate::port::Request;
use crate::store::Judged;

impl Engine {
    /// Notes that a rule applies to this request, if it does.
    pub(super) fn apply(&mut self, number: usize, request: &dyn Request) {
        let Some(Judge { rule, actor, hot, .. }) = self.rules.get(number) else { return };
        if !rule.except.is_empty() && rule.except.covers(request, &self.scratch.path) {
            return;
        }
        let caller = self.callers.of(*actor, request);
        if hot.is_some() && !self.scratch.is_counted {
            self.spot(number, caller, request);
        }
        let Some(Judge { rule, .. }) = self.rules.get(number) else { return };
        let (key, percentile) = match (caller, rule.absent) {
            (Caller::Known { key, percentile }, _) => (key, percentile),
            (Caller::Absent, Absent::Skip) => return,
            (Caller::Shared, _) | (Caller::Absent, _) => (Key::SHARE, 0),
        };
        let denied = caller == Caller::Absent && rule.absent == Absent::Deny;
        self.scratch.opinions.push(Opinion {
            rule: number,
            key,
            decision: if denied { Decision::NEVER } else { Decision::NOW },
            loan: 0,
            shadow: self.shadow || rule.shadow || percentile >= rule.enforce,
            banned: false,
            is_own: matches!(caller, Caller::Known { .. }),
            charged: false,
            looks: false,
            ask: false,
            alone: false,
            grant: None,
            known: None,
            remaining: 0,
            told: true,
        });
    }

    /// Has every rule judge the request.
    pub(super) fn judge(&mut self) {
        for opinion in &mut self.scratch.opinions {
            let Some(Judge { store, counts, .. }) = self.rules.get_mut(opinion.rule) else {
                continue;
            };
            let Judged { decision, overflow, ask } = store.judge(opinion.key, self.scratch.now);
            counts.overflow += u64::from(overflow);
            opinion.is_own &= !overflow;
            if opinion.decision.is_admitted() {
                (opinion.decision, opinion.ask) = (decision, ask);
                opinion.loan = store.loan();
            }
        }
    }
}
