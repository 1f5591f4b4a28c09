//! What the engine tells about a decision. Nothing here is on the way of an accepted request
//! unless a configuration asks for it.

use super::opinion::{Basis, Refused, Says};
use super::{Engine, Judge, Opinion};
use crate::decision::Retry;
use crate::policy::{Accepted, Scope};
use crate::time::{Micros, Now, SECOND};
use crate::verdict::{Held, Line, Refusal, Report, Seat, Standing, Verdict};
use crate::verdict::{fields, refusal_fields, state};

impl Engine {
    /// The verdict on a request that every rule admits or judges in shadow only, and that may leave
    /// `delay` ticks after it was judged.
    pub(super) fn admit(&mut self, delay: Micros) -> Verdict {
        if self.accepted != Accepted::default() {
            self.measure();
        }
        let opinions = &self.scratch.opinions;
        let shadowed = opinions.iter().find(|opinion| opinion.retry().is_some());
        let longest = || opinions.iter().max_by_key(|opinion| opinion.wait());
        let reported = match shadowed {
            Some(shadowed) => Some(("shadow", shadowed)),
            None if delay > 0 => longest().map(|opinion| ("held", opinion)),
            None if self.accepted.filter_state => self.nearest().map(|near| ("admitted", near)),
            None => None,
        };
        let fields = if self.accepted.headers { fields(&self.standings()) } else { Vec::new() };
        let wait = (delay > 0).then_some(Retry::After(delay));
        let state = reported
            .and_then(|(outcome, opinion)| self.state(outcome, opinion, opinion.retry().or(wait)));
        let report = Report { fields, state };
        if delay == 0 {
            return Verdict::Admit(report);
        }
        let until = self.scratch.now.mono.saturating_add(delay);
        let seats = self.seats();
        // Who moves up takes the place of another in this line; elsewhere it has one of its own.
        let line = self.line().filter(|_| seats.len() == 1);
        Verdict::Hold(Held { until, line, seats, report })
    }

    /// The places that the request takes in lines.
    fn seats(&self) -> Vec<Seat> {
        let seat = |opinion: &Opinion| {
            let judge = self.rules.get(opinion.rule).filter(|judge| judge.queues)?;
            let Says::Admits { by, .. } = &opinion.says else { return None };
            let place = match by {
                Basis::Store(found) => judge.store.receipt(found.is_charged().then_some(found)?),
                Basis::Redis(grant) => grant.receipt,
                Basis::Agreed(_) => return None,
            };
            Some(Seat { rule: opinion.rule, key: opinion.key, place })
        };
        self.scratch.opinions.iter().filter(|opinion| !opinion.shadow).filter_map(seat).collect()
    }

    /// The line in which a request moves up when one before it leaves: it must be the only one that
    /// holds the request, and this worker's own.
    fn line(&self) -> Option<Line> {
        let mut holding = self.scratch.opinions.iter().filter(|opinion| opinion.wait() > 0);
        let (Some(opinion), None) = (holding.next(), holding.next()) else { return None };
        let Judge { rule, queues, .. } = self.rules.get(opinion.rule)?;
        (*queues && rule.is_local()).then_some(Line { rule: opinion.rule, key: opinion.key })
    }

    /// The verdict on a request that a rule refuses: the first such rule is named and counted, and
    /// the longest wait counts. Nothing is charged.
    pub(super) fn refuse(&mut self) -> Verdict {
        self.measure();
        let mut first = None;
        let mut longest = Retry::After(0);
        for opinion in &self.scratch.opinions {
            let (Some(retry), Some(judge)) = (opinion.retry(), self.rules.get_mut(opinion.rule))
            else {
                continue;
            };
            if opinion.shadow {
                judge.counts.shadow_refused += 1;
                continue;
            }
            if let Some(bans) = &mut judge.bans
                && let Says::Refuses(Refused { counts: true, .. }) = opinion.says
            {
                bans.refused(opinion.key, self.scratch.now.mono);
            }
            longest = longest.max(retry);
            first = first.or(Some(opinion));
        }
        let Some((opinion, state)) = first.and_then(|opinion| {
            let banned = matches!(opinion.says, Says::Bans(_));
            let outcome = if banned { "banned" } else { "refused" };
            Some((opinion, self.state(outcome, opinion, opinion.retry())?))
        }) else {
            return Verdict::PASS;
        };
        let mut fields = fields(&self.standings());
        fields.extend(refusal_fields(longest));
        let (number, banned) = (opinion.rule, matches!(opinion.says, Says::Bans(_)));
        let Some(judge) = self.rules.get_mut(number) else { return Verdict::PASS };
        if banned {
            judge.counts.banned += 1;
        } else {
            judge.counts.refused += 1;
        }
        let log = (self.log_refused && judge.may_log(self.scratch.now)).then(|| state.clone());
        Verdict::Refuse(Refusal { response: judge.rule.response.clone(), fields, state, log })
    }

    /// The rule that is nearest to refusing.
    fn nearest(&self) -> Option<&Opinion> {
        self.scratch.opinions.iter().min_by_key(|opinion| opinion.remaining)
    }

    /// Every rule that shows in client headers, as it stands.
    fn standings(&self) -> Vec<Standing<'_>> {
        let shown = |opinion: &&Opinion| {
            !opinion.shadow
                && match &opinion.says {
                    Says::Admits { by: Basis::Store(found), .. } => found.is_counted(),
                    _ => true,
                }
                && self.rules.get(opinion.rule).is_some_and(|judge| judge.rule.expose)
        };
        let standing = |opinion: &Opinion| {
            let Judge { rule, algorithm, .. } = self.rules.get(opinion.rule)?;
            Some(Standing {
                rule: &rule.name,
                policy: algorithm.policy(),
                remaining: opinion.remaining,
                retry: opinion.retry(),
            })
        };
        self.scratch.opinions.iter().filter(shown).filter_map(standing).collect()
    }

    /// Asks for what is left after the decision.
    fn measure(&mut self) {
        for opinion in &mut self.scratch.opinions {
            let judge = self.rules.get_mut(opinion.rule);
            opinion.remaining = match &opinion.says {
                Says::Nothing | Says::Pending { .. } | Says::Bans(_) => 0,
                Says::Admits { by: Basis::Store(found), .. } => {
                    judge.map_or(0, |judge| judge.store.remaining(found))
                }
                Says::Admits { by: Basis::Redis(grant), .. } => grant.left,
                Says::Admits { by: Basis::Agreed(left), .. } => *left,
                Says::Refuses(refused) => refused.left,
            };
        }
    }

    fn state(&self, outcome: &str, opinion: &Opinion, wait: Option<Retry>) -> Option<String> {
        let rule = &self.rules.get(opinion.rule)?.rule;
        let scope = match rule.scope {
            Scope::Local => "local",
            Scope::Global if self.is_together() => "global",
            Scope::Gateway | Scope::Global => "gateway",
        };
        let mode = if opinion.shadow { "shadow" } else { "enforced" };
        Some(state(outcome, &rule.name, scope, mode, wait, opinion.key.hash))
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
