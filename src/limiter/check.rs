//! A request in progress, and its check against each rule that applies.

use crate::report::explained::Explained;
use crate::report::{Outcome, Reason, Refused};
use crate::rules::CompiledRule;
use diana_algorithm::latest_renewal;
use diana_policy::decision::{Decision, Retry};
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};
use diana_redis::protocol::RuleReply;
use diana_store::usage::Remaining;
use diana_store::{Account, Reservation};

/// A request with its checks: created by `decide`, stored while Redis is asked, resumed or dropped.
#[derive(Default)]
pub(crate) struct InProgress {
    /// One for each rule that applies.
    pub(crate) checks: Vec<Check>,
    /// When all rules were checked.
    pub(crate) now: Now,
    /// Since when it waits for Redis, if it does.
    pub(crate) since: Option<Micros>,
    /// Its number in the limiter and its stream, if it has waited.
    pub(crate) waits: Option<(u64, u32)>,
    /// The rules that mark it, since its caller is hot.
    pub(crate) hot: Vec<usize>,
    /// The rules that do not apply, if an operator asks for an explanation.
    pub(crate) explained: Option<Vec<Explained>>,
}

/// The caller of a request under a rule.
pub(crate) struct RuleCaller {
    pub(crate) rule: usize,
    pub(crate) key: Key,
    /// Whether the rule is in shadow for this caller: checked and reported only.
    pub(crate) shadow: bool,
    /// Whether the caller is known, and does not share its state with other callers.
    pub(crate) is_own: bool,
    /// Whether the rule refuses all requests: of unknown callers, or by a plan without permits.
    pub(crate) denied: bool,
}

/// The check of a request against one rule.
pub(crate) struct Check {
    pub(crate) rule: usize,
    pub(crate) key: Key,
    /// The caller's plan; zero if the rule has none.
    pub(crate) plan: u32,
    /// The cost of the request in permits.
    pub(crate) cost: u64,
    /// Whether the rule is in shadow for this caller: checked and reported only.
    pub(crate) shadow: bool,
    /// Whether the caller is known, and does not share its state with other callers.
    pub(crate) is_own: bool,
    /// Whether Redis did not reply, so that the gateway enforces its share of the limit.
    pub(crate) alone: bool,
    pub(crate) outcome: CheckOutcome,
}

/// The result of a check.
#[allow(
    clippy::large_enum_variant,
    reason = "an allocation for each rule costs more than what is moved"
)]
pub(crate) enum CheckOutcome {
    /// The request was not checked yet, or must be checked again.
    Unchecked,
    /// Redis must be asked first, or is being asked.
    Pending,
    /// The request may proceed after `wait` ticks.
    Admits { wait: Micros, by: Basis },
    /// The request is refused.
    Refuses(Refused),
}

/// The basis on which a rule admits a request.
#[allow(
    clippy::large_enum_variant,
    reason = "an allocation for each rule costs more than what is moved"
)]
pub(crate) enum Basis {
    /// The reservation of its store, which is not charged yet.
    Store(Reservation),
    /// A charge in Redis, which is returned if the request does not proceed.
    Redis(Grant),
    /// Redis, without a charge, since another rule refuses: the remaining permits.
    Agreed(u64),
}

impl Check {
    pub(crate) fn of(caller: RuleCaller, plan: u32, cost: u64) -> Check {
        let RuleCaller { rule, key, shadow, is_own, denied } = caller;
        let outcome = match denied {
            true => CheckOutcome::Refuses(Refused {
                reason: Reason::Used,
                retry: Retry::Never,
                remaining: Some(0),
            }),
            false => CheckOutcome::Unchecked,
        };
        Check { rule, key, plan, cost, shadow, is_own, alone: false, outcome }
    }

    /// The caller and its plan.
    pub(crate) fn account(&self) -> Account {
        Account { key: self.key, plan: self.plan }
    }

    /// Checks the request at `now`.
    pub(crate) fn check(&mut self, rule: &mut CompiledRule, now: Now) {
        let reservation = match rule.redis_store(self.plan) {
            Some(store) if self.alone => store.check_alone(self.account(), self.cost, now),
            _ => rule.store.check(self.account(), self.cost, now),
        };
        self.take(rule, reservation);
    }

    /// Takes the reservation of the store.
    pub(crate) fn take(&mut self, rule: &mut CompiledRule, found: Reservation) {
        self.is_own &= !found.is_overflow();
        match found.decision() {
            _ if found.asks() => self.outcome = CheckOutcome::Pending,
            Decision::Admit { wait } => {
                self.outcome = CheckOutcome::Admits { wait, by: Basis::Store(found) }
            }
            Decision::Refuse { retry } if found.is_counted() => {
                let remaining = rule.store.remaining(&found).map(|it| it.permits);
                let refused = Refused::new(Reason::Used, retry, remaining);
                self.outcome =
                    CheckOutcome::Refuses(refused.if_outstanding(found.is_outstanding()));
            }
            Decision::Refuse { retry } => {
                self.outcome =
                    CheckOutcome::Refuses(Refused::new(Reason::Unavailable, retry, None));
            }
        }
    }

    /// The rule refuses a request that it would have admitted. What Redis charged is returned.
    pub(crate) fn refuse(&mut self, rule: &mut CompiledRule, reason: Reason, retry: Retry) {
        self.give_back(rule);
        let refused = Refused::new(reason, retry, self.remaining(self.known(rule)));
        let is_outstanding = match &self.outcome {
            CheckOutcome::Admits { by: Basis::Store(found), .. } => found.is_outstanding(),
            _ => false,
        };
        self.outcome = CheckOutcome::Refuses(refused.if_outstanding(is_outstanding));
    }

    /// The rule bans the caller for `left` ticks, unless that is 0. What Redis charged is returned.
    pub(crate) fn ban(&mut self, rule: &mut CompiledRule, left: Micros) {
        if left > 0 {
            self.give_back(rule);
            let refused = Refused::new(Reason::Banned, Retry::After(left), Some(0));
            self.outcome = CheckOutcome::Refuses(refused);
        }
    }

    /// Takes the reply of Redis: the request may leave `wait` ticks after `at`, the instant of the decision. It was sent and
    /// received at the two last instants.
    pub(crate) fn on_reply(
        &mut self,
        rule: &mut CompiledRule,
        reply: &RuleReply,
        (wait, at): (Option<Micros>, Micros),
        (sent, now): (Now, Now),
    ) {
        rule.counts.overflow += u64::from(reply.overflow);
        let Some(store) = rule.redis_store(self.plan) else { return };
        let wait = wait.filter(|_| reply.retry.is_none());
        let charged = if wait.is_some() { self.cost } else { 0 };
        let receipt = store.receive(self.key, reply, (self.cost, charged), (sent, now));
        // Leased permits of this worker are available to the caller, too.
        let left = store.left(self.key).unwrap_or(reply.remaining);
        self.is_own &= !reply.overflow;
        self.outcome = match (reply.retry, wait) {
            (Some(retry), _) => {
                let refused = Refused::new(Reason::Used, retry, Some(left));
                CheckOutcome::Refuses(refused.if_outstanding(reply.is_outstanding))
            }
            (None, Some(wait)) => {
                let wait = if store.holds() { wait } else { 0 };
                let term = reply.term;
                let until = at.saturating_add(wait);
                let by = Basis::Redis(Grant { until, receipt, term, left });
                CheckOutcome::Admits { wait: until.saturating_sub(now.mono), by }
            }
            (None, None) => CheckOutcome::Admits { wait: 0, by: Basis::Agreed(left) },
        };
    }

    /// Redis did not reply.
    pub(crate) fn on_failure(&mut self, rule: &mut CompiledRule, now: Now) {
        self.alone = true;
        if let Some(store) = rule.redis_store(self.plan) {
            store.complete(self.key, None, now);
        }
    }

    /// Updates the result to `now`.
    pub(crate) fn catch_up(&mut self, rule: &mut CompiledRule, now: Now) {
        match &mut self.outcome {
            CheckOutcome::Unchecked => self.check(rule, now),
            CheckOutcome::Admits { wait, by: Basis::Redis(grant) } => {
                *wait = grant.until.saturating_sub(now.mono);
            }
            CheckOutcome::Admits { .. } | CheckOutcome::Pending | CheckOutcome::Refuses(_) => {}
        }
    }

    /// Returns what Redis charged, if it did.
    pub(crate) fn give_back(&mut self, rule: &mut CompiledRule) {
        if let CheckOutcome::Admits { by, .. } = &mut self.outcome
            && let Basis::Redis(Grant { receipt, term, left, .. }) = *by
            && let Some(store) = rule.redis_store(self.plan)
        {
            store.give_back(self.key, (receipt, term), self.cost);
            *by = Basis::Agreed(left);
        }
    }

    /// The refusal, if the rule refuses the request.
    pub(crate) fn refused(&self) -> Option<&Refused> {
        if let CheckOutcome::Refuses(refused) = &self.outcome { Some(refused) } else { None }
    }

    /// Returns true if the rule bans the caller.
    pub(crate) fn is_ban(&self) -> bool {
        self.refused().is_some_and(|refused| refused.reason == Reason::Banned)
    }

    /// The decision, for reports.
    pub(crate) fn reported(&self) -> Outcome {
        match &self.outcome {
            CheckOutcome::Refuses(refused) => Outcome::Refused(*refused),
            CheckOutcome::Unchecked | CheckOutcome::Pending | CheckOutcome::Admits { .. } => {
                Outcome::Admitted { wait: self.turn() }
            }
        }
    }

    /// The remaining permits of an admitted request, from the store.
    pub(crate) fn known(&self, rule: &mut CompiledRule) -> Option<Remaining> {
        match &self.outcome {
            CheckOutcome::Admits { by: Basis::Store(found), .. } => rule.store.remaining(found),
            _ => None,
        }
    }

    /// The remaining permits after the decision. `known` is [`Check::known`]. `None` before Redis replied.
    pub(crate) fn remaining(&self, known: Option<Remaining>) -> Option<u64> {
        match &self.outcome {
            CheckOutcome::Unchecked | CheckOutcome::Pending => None,
            CheckOutcome::Admits { by: Basis::Store(_), .. } => known.map(|it| it.permits),
            CheckOutcome::Admits { by: Basis::Redis(grant), .. } => Some(grant.left),
            CheckOutcome::Admits { by: Basis::Agreed(left), .. } => Some(*left),
            CheckOutcome::Refuses(refused) => refused.remaining,
        }
    }

    /// Ticks until such a request may proceed, if it is refused, or until more permits remain; `None` is never.
    pub(crate) fn reset(
        &self,
        rule: &mut CompiledRule,
        known: Option<Remaining>,
        now: Now,
    ) -> Option<Micros> {
        if let Some(refused) = self.refused() {
            return refused.retry.ticks();
        }
        let CheckOutcome::Admits { wait, .. } = &self.outcome else { return None };
        if let Some(known) = known {
            return known.renewal;
        }
        let CompiledRule { algorithm, plans, .. } = rule;
        let plans = plans.as_deref_mut();
        let algorithm = plans.map_or(&*algorithm, |plans| plans.algorithm(self.plan));
        Some(latest_renewal(&**algorithm, self.cost, now)?.saturating_add(*wait))
    }

    /// Returns true if a store counts the request.
    pub(crate) fn is_counted(&self) -> bool {
        match &self.outcome {
            CheckOutcome::Admits { by: Basis::Store(found), .. } => found.is_counted(),
            CheckOutcome::Refuses(refused) => refused.reason != Reason::Unavailable,
            _ => true,
        }
    }

    /// Ticks that the rule holds the request; a rule in shadow holds none.
    pub(crate) fn wait(&self) -> Micros {
        if self.shadow { 0 } else { self.turn() }
    }

    /// Ticks that the rule holds the request, or would hold it if it were not in shadow.
    pub(crate) fn turn(&self) -> Micros {
        match self.outcome {
            CheckOutcome::Admits { wait, .. } => wait,
            _ => 0,
        }
    }
}

/// A charge in Redis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant {
    /// When the request may leave.
    pub(crate) until: Micros,
    /// The receipt with which the charge is returned, and the term in which it may be.
    pub(crate) receipt: u64,
    pub(crate) term: u64,
    /// The remaining permits after it.
    pub(crate) left: u64,
}
