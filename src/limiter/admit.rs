//! What is recorded of a decision. Nothing here is on the way of an accepted request unless a
//! configuration asks for it.

use std::rc::Rc;

use crate::check::{Basis, Check, CheckOutcome};
use crate::limiter::{CompiledRule, Limiter};
use crate::report::{Record, Report};
use crate::verdict::{Held, QueueLine, Verdict};
use diana_policy::key::Key;
use diana_policy::redis::OnFailure;
use diana_policy::time::{Micros, Now};
use diana_policy::{Accepted, Scope};
use diana_redis::handle::Handle;
use diana_request::settling::Heard;
use diana_store::permit::{Permit, Unsettled, permits};

impl Limiter {
    /// The verdict on a request that every rule admits or judges in shadow only, and that may leave
    /// `delay` ticks after it was judged.
    pub(crate) fn admit(&mut self, delay: Micros) -> Verdict {
        // First, since a rule that reserves no permits charges none yet, and the report counts the remaining ones.
        let charges = if self.kinds.settles { self.charges() } else { Vec::new() };
        let shadowed = self.count();
        let is_silent = shadowed.is_none()
            && delay == 0
            && self.reports.accepted == Accepted::default()
            && !self.scratch.explains;
        if is_silent && !self.kinds.settles {
            return Verdict::pass();
        }
        let report = (!is_silent).then(|| self.report(shadowed, delay));
        let report = match report {
            Some(report) if delay > 0 => report,
            report => {
                let permit = Permit::new(charges, &self.freed);
                return Verdict::Admit(permit, report.map(Box::new));
            }
        };
        let until = self.scratch.now.mono.saturating_add(delay);
        let places = self.places();
        // Who moves up takes the place of another in this line; elsewhere it has one of its own.
        let line = self.line().filter(|_| places.len() == 1);
        let place = Permit::new(places, &self.freed);
        let permit = Permit::new(charges, &self.freed);
        Verdict::Hold(Held { until, line, place, permit, report })
    }

    /// The places that the request takes in lines.
    fn places(&self) -> Vec<Unsettled> {
        let queues = |check: &&Check| {
            !check.shadow && self.rules.get(check.rule).is_some_and(|judge| judge.queues)
        };
        let held = self.scratch.checks.iter().filter(queues);
        held.filter_map(|check| charge(check, self.scratch.now)).collect()
    }

    /// The charges of the request that are to be settled.
    #[inline(never)]
    fn charges(&mut self) -> Vec<Unsettled> {
        let (rules, now) = (&mut self.rules, self.scratch.now);
        let is_full = self.freed.is_full();
        let open = |check: &mut Check| {
            let judge = rules.get_mut(check.rule)?;
            let settler = judge.settler.as_ref()?;
            let (is_checked_only, is_place) = (settler.reserves_nothing(), settler.is_place());
            let mut charge = charge(check, now)?;
            judge.counts.in_flight += i64::from(is_place);
            if is_full && !is_place {
                judge.counts.unsettled += 1;
                return None;
            }
            if is_checked_only {
                // Redis has only been asked whether it fits.
                if let CheckOutcome::Admits { by: Basis::Store(found), .. } = &mut check.says {
                    judge.store.cancel(found);
                }
                charge.reserved = 0;
            }
            Some(charge)
        };
        self.scratch.checks.iter_mut().filter_map(open).collect()
    }

    /// The line in which a request moves up when one before it leaves: it must be the only one that
    /// holds the request, and this worker's own.
    fn line(&self) -> Option<QueueLine> {
        let mut holding = self.scratch.checks.iter().filter(|check| check.wait() > 0);
        let (Some(check), None) = (holding.next(), holding.next()) else { return None };
        let CompiledRule { rule, queues, .. } = self.rules.get(check.rule)?;
        // Places are of one length, or whoever moved up would leave too early for the one behind.
        let is_even = rule.told.is_none();
        (*queues && rule.is_local() && is_even).then_some(QueueLine {
            rule: check.rule,
            key: check.key,
            plan: check.plan,
        })
    }

    /// Counts a request that goes on. The place of the first rule in shadow that would have refused it, or else held it.
    fn count(&mut self) -> Option<usize> {
        let (mut would_refuse, mut would_hold) = (None, None);
        for (place, check) in self.scratch.checks.iter().enumerate() {
            let Some(judge) = self.rules.get_mut(check.rule) else { continue };
            match check.says {
                CheckOutcome::Nothing | CheckOutcome::Pending | CheckOutcome::Admits { .. } => {
                    judge.counts.admit(check.wait());
                    if check.turn() > check.wait() {
                        judge.counts.shadow_held += 1;
                        would_hold = would_hold.or(Some(place));
                    }
                    if judge.rule.near.is_some() && is_near(check, judge) {
                        judge.counts.near += 1;
                    }
                }
                CheckOutcome::Refuses(_) | CheckOutcome::Bans(_) | CheckOutcome::Unavailable(_) => {
                    judge.counts.refuse(check.outcome(), true);
                    would_refuse = would_refuse.or(Some(place));
                }
            }
        }
        would_refuse.or(would_hold)
    }

    /// What is told of a request that goes on after `delay` ticks, which the rule at a place `shadowed`
    /// would have refused or held.
    #[inline(never)]
    fn report(&mut self, shadowed: Option<usize>, delay: Micros) -> Report {
        let explained = self.explained();
        let by = match shadowed {
            None if delay > 0 => {
                let holding = self.scratch.checks.iter().enumerate();
                holding.max_by_key(|(_, check)| check.wait()).map(|(place, _)| place)
            }
            shadowed => shadowed,
        };
        let (fields, mark) = (self.reports.fields, shadowed.and_then(|_| self.shadow_mark()));
        if self.reports.accepted == Accepted::default() {
            let by = by.and_then(|place| self.record(place));
            return Report { records: Vec::new(), fields, by, mark, explained };
        }
        let mut records = self.records();
        let by = match by {
            Some(place) => records.get(place).cloned(),
            None if self.reports.accepted.filter_state => {
                records.iter().min_by_key(|record| record.scarcity()).cloned()
            }
            None => None,
        };
        if !self.reports.accepted.headers {
            records.clear();
        }
        Report { records, fields, by, mark, explained }
    }

    /// The header that tells the upstream which rules in shadow would have refused the request, if any did.
    fn shadow_mark(&self) -> Option<(Rc<str>, String)> {
        let header = self.reports.mark.clone()?;
        let refuses = |check: &&Check| check.outcome().retry().is_some();
        let refusing = self.scratch.checks.iter().filter(refuses);
        let names = refusing.filter_map(|check| Some(&*self.rules.get(check.rule)?.name));
        let names: Vec<&str> = names.collect();
        (!names.is_empty()).then(|| (header, names.join(", ")))
    }

    /// What every rule decided that applied.
    pub(crate) fn records(&mut self) -> Vec<Record> {
        let places = 0..self.scratch.checks.len();
        places.filter_map(|place| self.record(place)).collect()
    }

    /// What one rule decided.
    pub(crate) fn record(&mut self, place: usize) -> Option<Record> {
        let check = self.scratch.checks.get(place)?;
        let judge = self.rules.get_mut(check.rule)?;
        let scope = judge.scope(check.key, self.fleet.client.is_some(), &self.fleet.redis.borrow());
        Some(judge.record(check, scope, self.scratch.now))
    }
}

impl CompiledRule {
    /// How widely a caller is counted, where there is a Redis or none.
    pub(crate) fn scope(&self, caller: Key, has_redis: bool, redis: &Handle) -> Scope {
        match self.rule.scope {
            Scope::Global if self.is_shared_out(redis) && redis.is_alone(caller) => Scope::Gateway,
            _ => self.rule.scope_with(has_redis),
        }
    }

    /// Returns true if each gateway enforces its share while Redis is unavailable.
    fn is_shared_out(&self, redis: &Handle) -> bool {
        self.rule.on_failure.unwrap_or(redis.on_failure) == OnFailure::Gateway
    }

    /// What it decided at `now` about a request that is counted as widely as `scope`.
    pub(crate) fn record(&mut self, check: &Check, scope: Scope, now: Now) -> Record {
        let known = check.known(self);
        Record {
            scope,
            shadow: check.shadow,
            shown: self.rule.expose && !check.shadow && check.is_counted(),
            outcome: check.outcome(),
            policy: match &mut self.plans {
                Some(plans) => plans.policy(check.plan),
                None => self.algorithm.properties().quota(),
            },
            plan: self.plans.as_ref().and_then(|plans| plans.name(check.plan)),
            remaining: check.remaining(known),
            reset: check.reset(self, known, now),
            caller: check.key,
            rule: self.name.clone(),
        }
    }
}

/// Whether a rule admits a request of a caller who has used more of its limit than is said to be near.
#[inline(never)]
fn is_near(check: &Check, judge: &mut CompiledRule) -> bool {
    let near = judge.rule.near.map_or(100, u128::from);
    let limit = judge.algorithm.properties().limit;
    let used = check.remaining(check.known(judge)).map(|left| limit.saturating_sub(left));
    used.is_some_and(|used| u128::from(used) * 100 > u128::from(limit) * near)
}

/// The charge of a rule for a request, if there was one and a store counts it.
fn charge(check: &Check, now: Now) -> Option<Unsettled> {
    let CheckOutcome::Admits { by, .. } = &check.says else { return None };
    let (receipt, is_alone) = match by {
        Basis::Store(found) if found.is_charged() && found.is_counted() => {
            (found.receipt(), found.is_alone)
        }
        Basis::Redis(grant) => (grant.receipt, false),
        Basis::Store(_) | Basis::Agreed(_) => return None,
    };
    Some(Unsettled {
        key: check.key,
        receipt,
        since: now.mono,
        reserved: permits(check.cost),
        used: 0,
        rule: check.rule as u32,
        plan: check.plan,
        heard: Heard::Nothing,
        is_own: check.is_own && !check.shadow,
        is_alone,
    })
}
