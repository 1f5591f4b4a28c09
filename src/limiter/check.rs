//! What the rules that apply to a request say about it.

use crate::limiter::CompiledRule;
use crate::report::Outcome;
use diana_algorithm::latest_renewal;
use diana_policy::decision::{Decision, Retry};
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now, SECOND};
use diana_store::usage::Remaining;
use diana_store::{Account, Reservation};

/// Whom a rule counts a request under, and how.
pub(crate) struct RuleCaller {
    pub(crate) rule: usize,
    pub(crate) key: Key,
    /// The plan by which it is judged; zero if the rule has none.
    pub(crate) plan: u32,
    /// Check and report only.
    pub(crate) shadow: bool,
    /// Whether the caller has a name, so that it is its own doing if the request is refused.
    pub(crate) is_own: bool,
    /// Whether the rule refuses whatever it asks: it has none, or a plan that allows nothing.
    pub(crate) denied: bool,
}

/// A rule that applies to the request in hand, and what it says. A rule that skips the request has none.
pub(crate) struct Check {
    pub(crate) rule: usize,
    pub(crate) key: Key,
    /// The plan by which it is judged; zero if the rule has none.
    pub(crate) plan: u32,
    /// Permits that the request takes.
    pub(crate) cost: u64,
    /// Check and report only.
    pub(crate) shadow: bool,
    /// Whether the caller has a name, so that it is its own doing if the request is refused.
    pub(crate) is_own: bool,
    /// Whether Redis was asked in vain, so that the gateway decides by its part of the limit.
    pub(crate) alone: bool,
    pub(crate) says: CheckOutcome,
}

/// What one rule says about a request.
#[allow(
    clippy::large_enum_variant,
    reason = "an allocation for each rule costs more than what is moved"
)]
pub(crate) enum CheckOutcome {
    /// It has not been checked, or has to be checked anew.
    Nothing,
    /// Redis has to be asked before anything can be said, or is being asked.
    Pending,
    /// The request may go on after `wait` ticks.
    Admits { wait: Micros, by: Basis },
    /// The request is refused.
    Refuses(Refused),
    /// The caller is banned for so many ticks more. Nothing was checked.
    Bans(Micros),
    /// Redis is unavailable, and the rule refuses all requests for this many ticks, without a check.
    Unavailable(Micros),
}

/// What a rule admits a request by.
#[allow(
    clippy::large_enum_variant,
    reason = "an allocation for each rule costs more than what is moved"
)]
pub(crate) enum Basis {
    /// What its store found, which is to be charged.
    Store(Reservation),
    /// What Redis charged. It has to be given back if the request does not go on.
    Redis(Grant),
    /// Redis, where nothing is charged any more since another rule refuses, with so many permits left.
    Agreed(u64),
}

/// A refusal.
pub(crate) struct Refused {
    pub(crate) retry: Retry,
    /// Whether other workers hold leases of the caller, so that the request may fit soon.
    pub(crate) is_outstanding: bool,
    /// Whether it counts towards a ban of the caller.
    pub(crate) counts: bool,
    /// Permits left to the caller, too few for the request, if that is known.
    pub(crate) left: Option<u64>,
}

impl Check {
    pub(crate) fn of(subject: RuleCaller, cost: u64) -> Check {
        let RuleCaller { rule, key, plan, shadow, is_own, denied } = subject;
        let says = match denied {
            true => {
                let (retry, left) = (Retry::Never, Some(0));
                CheckOutcome::Refuses(Refused::finally(retry, is_own, left))
            }
            false => CheckOutcome::Nothing,
        };
        Check { rule, key, plan, cost, shadow, is_own, alone: false, says }
    }

    /// The caller and its plan.
    pub(crate) fn account(&self) -> Account {
        Account { key: self.key, plan: self.plan }
    }

    /// Checks the request at `now`.
    pub(crate) fn check(&mut self, judge: &mut CompiledRule, now: Now) {
        let reservation = match judge.in_redis(self.plan) {
            Some(store) if self.alone => store.check_alone(self.account(), self.cost, now),
            _ => judge.store.check(self.account(), self.cost, now),
        };
        self.take(judge, reservation);
    }

    /// Takes what the store found.
    pub(crate) fn take(&mut self, judge: &mut CompiledRule, found: Reservation) {
        self.is_own &= !found.is_overflow();
        match found.decision() {
            _ if found.asks() => self.says = CheckOutcome::Pending,
            Decision::Admit { wait } => {
                self.says = CheckOutcome::Admits { wait, by: Basis::Store(found) }
            }
            Decision::Refuse { retry } if found.is_counted() => {
                self.says = CheckOutcome::Refuses(Refused::by(judge, &found, retry, self.is_own))
            }
            Decision::Refuse { retry } => {
                self.says = CheckOutcome::Unavailable(retry.ticks().unwrap_or(0));
            }
        }
    }

    /// The rule refuses what it would have admitted. What Redis charged goes back.
    pub(crate) fn refuse(&mut self, judge: &mut CompiledRule, retry: Retry, counts: bool) {
        self.give_back(judge);
        self.says = match &self.says {
            CheckOutcome::Admits { by: Basis::Store(found), .. } => {
                CheckOutcome::Refuses(Refused::by(judge, found, retry, counts))
            }
            CheckOutcome::Admits { by: Basis::Agreed(left), .. } => {
                CheckOutcome::Refuses(Refused::finally(retry, counts, Some(*left)))
            }
            _ => CheckOutcome::Refuses(Refused::finally(retry, counts, None)),
        };
    }

    /// The rule bans the caller for so long, if for any time at all. What Redis charged goes back.
    pub(crate) fn ban(&mut self, judge: &mut CompiledRule, left: Micros) {
        if left > 0 {
            self.give_back(judge);
            self.says = CheckOutcome::Bans(left);
        }
    }

    /// Gives back what Redis charged, if it did.
    pub(crate) fn give_back(&mut self, judge: &mut CompiledRule) {
        if let CheckOutcome::Admits { by, .. } = &mut self.says
            && let Basis::Redis(Grant { receipt, term, left, .. }) = *by
            && let Some(store) = judge.in_redis(self.plan)
        {
            store.give_back(self.key, (receipt, term), self.cost);
            *by = Basis::Agreed(left);
        }
    }

    /// What was decided.
    pub(crate) fn outcome(&self) -> Outcome {
        match &self.says {
            CheckOutcome::Refuses(refused) => Outcome::Refused(refused.retry),
            CheckOutcome::Bans(left) => Outcome::Banned(*left),
            CheckOutcome::Unavailable(ticks) => Outcome::Unavailable(*ticks),
            CheckOutcome::Nothing | CheckOutcome::Pending | CheckOutcome::Admits { .. } => {
                Outcome::Admitted { wait: self.turn() }
            }
        }
    }

    /// The remaining permits of an admitted request, from the store.
    pub(crate) fn known(&self, judge: &mut CompiledRule) -> Option<Remaining> {
        match &self.says {
            CheckOutcome::Admits { by: Basis::Store(found), .. } => judge.store.remaining(found),
            _ => None,
        }
    }

    /// The remaining permits after the decision. `known` is [`Check::known`]. `None` before Redis replied.
    pub(crate) fn remaining(&self, known: Option<Remaining>) -> Option<u64> {
        match &self.says {
            CheckOutcome::Nothing | CheckOutcome::Pending | CheckOutcome::Unavailable(_) => None,
            CheckOutcome::Bans(_) => Some(0),
            CheckOutcome::Admits { by: Basis::Store(_), .. } => known.map(|it| it.permits),
            CheckOutcome::Admits { by: Basis::Redis(grant), .. } => Some(grant.left),
            CheckOutcome::Admits { by: Basis::Agreed(left), .. } => Some(*left),
            CheckOutcome::Refuses(refused) => refused.left,
        }
    }

    /// Ticks until such a request may go on, if it is refused, or until more permits are left, if that ever is.
    pub(crate) fn reset(
        &self,
        judge: &mut CompiledRule,
        known: Option<Remaining>,
        now: Now,
    ) -> Option<Micros> {
        if let Some(retry) = self.outcome().retry() {
            return retry.ticks();
        }
        let CheckOutcome::Admits { wait, .. } = &self.says else { return None };
        if let Some(known) = known {
            return known.renewal;
        }
        let CompiledRule { algorithm, plans, .. } = judge;
        let plans = plans.as_deref_mut();
        let algorithm = plans.map_or(&*algorithm, |plans| plans.algorithm(self.plan));
        Some(latest_renewal(&**algorithm, self.cost, now)?.saturating_add(*wait))
    }

    /// Whether anybody counts the request.
    pub(crate) fn is_counted(&self) -> bool {
        match &self.says {
            CheckOutcome::Admits { by: Basis::Store(found), .. } => found.is_counted(),
            CheckOutcome::Unavailable(_) => false,
            _ => true,
        }
    }

    /// Ticks that the rule holds the request. Nobody waits for a rule in shadow.
    pub(crate) fn wait(&self) -> Micros {
        if self.shadow { 0 } else { self.turn() }
    }

    /// Ticks that the rule holds the request, or would hold it if it were not in shadow.
    pub(crate) fn turn(&self) -> Micros {
        match self.says {
            CheckOutcome::Admits { wait, .. } => wait,
            _ => 0,
        }
    }
}

impl Refused {
    /// While leases are outstanding it is unknown when the request fits, and whether the caller has used up its limit.
    pub(crate) fn new(
        retry: Retry,
        is_outstanding: bool,
        counts: bool,
        left: Option<u64>,
    ) -> Refused {
        match is_outstanding {
            true => Refused { retry: Retry::After(SECOND), is_outstanding, counts: false, left },
            false => Refused::finally(retry, counts && retry != Retry::Soon, left),
        }
    }

    /// A refusal that no lease may overturn.
    pub(crate) fn finally(retry: Retry, counts: bool, left: Option<u64>) -> Refused {
        Refused { retry, is_outstanding: false, counts, left }
    }

    /// By what a store found.
    pub(crate) fn by(
        judge: &mut CompiledRule,
        found: &Reservation,
        retry: Retry,
        counts: bool,
    ) -> Refused {
        let left = judge.store.remaining(found).map(|it| it.permits);
        Refused::new(retry, found.is_outstanding(), counts, left)
    }
}

/// What Redis charged for a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant {
    /// When the request may leave.
    pub(crate) until: Micros,
    /// Under which the charge can be given back, and the term in which it may.
    pub(crate) receipt: u64,
    pub(crate) term: u64,
    /// Permits left after it.
    pub(crate) left: u64,
}
