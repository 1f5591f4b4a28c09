//! Charging all rules that admit a request, or none of them.

use super::opinion::{Basis, Says};
use super::{Engine, Opinion};
use diana_algorithm::Leasing;
use diana_policy::decision::{Decision, Retry};
use diana_policy::time::Micros;
use diana_policy::{Rule, Scope};

/// How often the turn of a request that several rules hold may move before it is refused.
const ROUNDS: usize = 16;

/// When a rule is charged: what other workers may have changed in the meantime comes first, the easier
/// to take back the earlier, then what only this worker changes, and what never comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
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
    pub(super) fn lends(self) -> bool {
        matches!(self, Turn::First | Turn::Second)
    }

    pub(super) const ALL: [Turn; 5] =
        [Turn::First, Turn::Second, Turn::Third, Turn::Fourth, Turn::Last];

    pub(super) fn of(rule: &Rule, leasing: Leasing) -> Turn {
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
pub(super) enum Charged {
    /// Every rule was charged; it may leave so many ticks from now.
    Leaves(Micros),
    /// A rule refuses, and none was charged.
    Nothing,
    /// The fleet has to be asked about a request that other rules hold for so many ticks.
    Asks(Micros),
}

impl Engine {
    /// Charges every rule that admits the request, for the first instant at which it may leave.
    pub(super) fn charge(&mut self) -> Charged {
        for _ in 0..ROUNDS {
            let (mut delay, mut is_pending) = (0, false);
            for opinion in &self.scratch.opinions {
                match &opinion.says {
                    Says::Pending => is_pending = true,
                    // Nobody waits for a rule in shadow, nor is refused by it.
                    _ if opinion.shadow => {}
                    Says::Admits { wait, .. } => delay = delay.max(*wait),
                    Says::Refuses(_) | Says::Bans(_) | Says::Unavailable(_) => {
                        return Charged::Nothing;
                    }
                    Says::Nothing => {}
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
        let own = self.scratch.opinions.iter_mut().find(|opinion| !opinion.shadow);
        if let Some(opinion) = own
            && let Some(judge) = self.rules.get_mut(opinion.rule)
        {
            // No refusal of the rule's, so none that counts towards a ban.
            opinion.refuse(judge, Retry::After(1), false);
        }
        Charged::Nothing
    }

    /// Whether every rule can hold the request for as long as one of them asks for.
    fn can_hold(&mut self, delay: Micros) -> bool {
        let shorter = |opinion: &&mut Opinion| !opinion.shadow && opinion.wait() < delay;
        for opinion in self.scratch.opinions.iter_mut().filter(shorter) {
            let Some(judge) = self.rules.get_mut(opinion.rule) else { continue };
            let Says::Admits { by, .. } = &mut opinion.says else { continue };
            let decision = match by {
                Basis::Store(found) => judge.by_plan(opinion.plan).can_hold(found, delay),
                // It was charged for the instant at which it would have left.
                Basis::Redis(_) if judge.in_redis(opinion.plan).is_some_and(|it| it.holds()) => {
                    Decision::retry(1)
                }
                Basis::Redis(_) | Basis::Agreed(_) => Decision::NOW,
            };
            if let Decision::Refuse { retry } = decision {
                opinion.refuse(judge, retry, opinion.is_own);
                return false;
            }
        }
        true
    }

    /// Charges the rules in their turns. Where one has changed its mind none is charged.
    fn charge_all(&mut self, delay: Micros) -> bool {
        for &turn in &self.kinds.turns {
            for opinion in &mut self.scratch.opinions {
                let Some(judge) = self.rules.get_mut(opinion.rule) else { continue };
                if judge.turn != turn {
                    continue;
                }
                let Says::Admits { wait, by: Basis::Store(found) } = &mut opinion.says else {
                    continue;
                };
                // Nobody waits for a rule in shadow.
                let delay = if opinion.shadow { *wait } else { delay };
                let decision = judge.by_plan(opinion.plan).charge(found, delay);
                if found.is_charged() {
                    continue;
                }
                match decision {
                    Decision::Admit { wait: longer } => *wait = longer,
                    Decision::Refuse { retry } => {
                        opinion.refuse(judge, retry, opinion.is_own);
                    }
                }
                if !opinion.shadow {
                    self.undo();
                    return false;
                }
            }
        }
        true
    }

    fn undo(&mut self) {
        for opinion in self.scratch.opinions.iter_mut().rev() {
            let judge = self.rules.get_mut(opinion.rule);
            if let (Some(judge), Says::Admits { by: Basis::Store(found), .. }) =
                (judge, &mut opinion.says)
                && found.is_charged()
            {
                judge.by_plan(opinion.plan).undo(found);
            }
        }
    }

    fn judge_again(&mut self) {
        for opinion in &mut self.scratch.opinions {
            // What a rule refused it will not admit at the same instant.
            if let Says::Admits { by: Basis::Store(_), .. } = opinion.says
                && let Some(judge) = self.rules.get_mut(opinion.rule)
            {
                opinion.check(judge, self.scratch.now);
            }
        }
    }
}
