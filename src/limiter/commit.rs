//! Charging all rules that admit a request, or none of them.

use crate::check::{Basis, Check, CheckOutcome};
use crate::limiter::Limiter;
use diana_algorithm::Leasing;
use diana_policy::decision::{Decision, Retry};
use diana_policy::time::Micros;
use diana_policy::{Rule, Scope};

/// How often the turn of a request that several rules hold may move before it is refused.
const ROUNDS: usize = 16;

/// When a rule is charged: what other workers may have changed in the meantime comes first, the easier
/// to take back the earlier, then what only this worker changes, and what never comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Shared windows.
    First,
    /// Shared buckets, whose permits come back one by one meanwhile.
    Second,
    /// Shared places in a line, of which only the last one comes back.
    Third,
    /// In this worker.
    Fourth,
    /// Quotas, which take nothing back.
    Last,
}

impl Turn {
    /// Whether permits are kept by workers, which have to hand them in soon.
    pub(crate) fn lends(self) -> bool {
        matches!(self, Turn::First | Turn::Second)
    }

    pub(crate) const ALL: [Turn; 5] =
        [Turn::First, Turn::Second, Turn::Third, Turn::Fourth, Turn::Last];

    pub(crate) fn of(rule: &Rule, leasing: Leasing) -> Turn {
        match leasing {
            _ if rule.daily.is_some() => Turn::Last,
            _ if rule.scope == Scope::Local => Turn::Fourth,
            Leasing::Never => Turn::Third,
            Leasing::Bucket => Turn::Second,
            Leasing::Window => Turn::First,
        }
    }
}

/// What became of the request in hand.
pub(crate) enum Charged {
    /// Every rule was charged; it may leave so many ticks from now.
    Leaves(Micros),
    /// A rule refuses, and none was charged.
    Nothing,
    /// The fleet has to be asked about a request that other rules hold for so many ticks.
    Asks(Micros),
}

impl Limiter {
    /// Charges every rule that admits the request, for the first instant at which it may leave.
    pub(crate) fn charge(&mut self) -> Charged {
        for _ in 0..ROUNDS {
            let (mut delay, mut is_pending) = (0, false);
            for check in &self.scratch.checks {
                match &check.says {
                    CheckOutcome::Pending => is_pending = true,
                    // Nobody waits for a rule in shadow, nor is refused by it.
                    _ if check.shadow => {}
                    CheckOutcome::Admits { wait, .. } => delay = delay.max(*wait),
                    CheckOutcome::Refuses(_)
                    | CheckOutcome::Bans(_)
                    | CheckOutcome::Unavailable(_) => {
                        return Charged::Nothing;
                    }
                    CheckOutcome::Nothing => {}
                }
            }
            if delay > 0 && !self.can_hold(delay) {
                return Charged::Nothing;
            }
            if is_pending {
                return Charged::Asks(delay);
            }
            if self.charge_all(delay) {
                return Charged::Leaves(delay);
            }
            self.judge_again();
        }
        // Others always come before.
        let own = self.scratch.checks.iter_mut().find(|check| !check.shadow);
        if let Some(check) = own
            && let Some(judge) = self.rules.get_mut(check.rule)
        {
            // No refusal of the rule's, so none that counts towards a ban.
            check.refuse(judge, Retry::After(1), false);
        }
        Charged::Nothing
    }

    /// Whether every rule can hold the request for as long as one of them asks for.
    fn can_hold(&mut self, delay: Micros) -> bool {
        let shorter = |check: &&mut Check| !check.shadow && check.wait() < delay;
        for check in self.scratch.checks.iter_mut().filter(shorter) {
            let Some(judge) = self.rules.get_mut(check.rule) else { continue };
            let CheckOutcome::Admits { by, .. } = &check.says else { continue };
            let late = match by {
                Basis::Store(found) => delay.saturating_sub(found.longest_delay),
                // It was charged for the instant at which it would have left.
                Basis::Redis(_) if judge.in_redis(check.plan).is_some_and(|it| it.holds()) => 1,
                Basis::Redis(_) | Basis::Agreed(_) => 0,
            };
            if late > 0 {
                check.refuse(judge, Retry::After(late), check.is_own);
                return false;
            }
        }
        true
    }

    /// Charges the rules in their turns. Where one has changed its mind none is charged.
    fn charge_all(&mut self, delay: Micros) -> bool {
        for &turn in &self.kinds.turns {
            for check in &mut self.scratch.checks {
                let Some(judge) = self.rules.get_mut(check.rule) else { continue };
                if judge.turn != turn {
                    continue;
                }
                let CheckOutcome::Admits { wait, by: Basis::Store(found) } = &mut check.says else {
                    continue;
                };
                // Nobody waits for a rule in shadow.
                let delay = if check.shadow { *wait } else { delay };
                let decision = judge.store.charge(found, delay);
                if found.is_charged() {
                    continue;
                }
                match decision {
                    Decision::Admit { wait: longer } => *wait = longer,
                    Decision::Refuse { retry } => {
                        check.refuse(judge, retry, check.is_own);
                    }
                }
                if !check.shadow {
                    self.undo();
                    return false;
                }
            }
        }
        true
    }

    fn undo(&mut self) {
        for check in self.scratch.checks.iter_mut().rev() {
            let judge = self.rules.get_mut(check.rule);
            if let (Some(judge), CheckOutcome::Admits { by: Basis::Store(found), .. }) =
                (judge, &mut check.says)
                && found.is_charged()
            {
                judge.store.cancel(found);
            }
        }
    }

    fn judge_again(&mut self) {
        for check in &mut self.scratch.checks {
            // What a rule refused it will not admit at the same instant.
            if let CheckOutcome::Admits { by: Basis::Store(_), .. } = check.says
                && let Some(judge) = self.rules.get_mut(check.rule)
            {
                check.check(judge, self.scratch.now);
            }
        }
    }
}
