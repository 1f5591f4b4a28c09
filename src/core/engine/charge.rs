//! Charging all rules that admit a request, or none of them.

use super::{Engine, Opinion};
use crate::algorithm::Leasing;
use crate::decision::Decision;
use crate::policy::{Rule, Scope};
use crate::time::Micros;

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
    /// Charges every rule that admits the request, for the first instant at which it may leave, and
    /// counts it.
    pub(super) fn charge(&mut self) -> Charged {
        for _ in 0..ROUNDS {
            let opinions = &self.scratch.opinions;
            if opinions.iter().any(Opinion::is_refusal) {
                return Charged::Nothing;
            }
            let delay = opinions.iter().map(Opinion::wait).max().unwrap_or(0);
            if delay > 0 && !self.can_hold(delay) {
                return Charged::Nothing;
            }
            if self.scratch.opinions.iter().any(|opinion| opinion.ask) {
                return Charged::Asks(delay);
            }
            if self.charge_all(delay) {
                self.count();
                return Charged::Leaves(delay);
            }
            self.judge_again();
        }
        // Others always come before.
        let own = self.scratch.opinions.iter_mut().find(|opinion| !opinion.shadow);
        if let Some(opinion) = own {
            // No refusal of the rule's, so none that counts towards a ban.
            (opinion.decision, opinion.is_own) = (Decision::retry(1), false);
        }
        Charged::Nothing
    }

    /// Whether every rule can hold the request for as long as one of them asks for.
    fn can_hold(&mut self, delay: Micros) -> bool {
        let shorter = |opinion: &&mut Opinion| !opinion.shadow && opinion.wait() < delay;
        for opinion in self.scratch.opinions.iter_mut().filter(shorter) {
            let Some(judge) = self.rules.get_mut(opinion.rule) else { continue };
            let decision = match opinion.grant {
                // It was charged for the instant at which it would have left.
                Some(_) if judge.store.fleet().is_some_and(|store| store.holds()) => {
                    Decision::retry(1)
                }
                Some(_) => Decision::NOW,
                None => match &mut opinion.reservation {
                    Some(reservation) => judge.store.can_hold(reservation, delay),
                    None => Decision::NOW,
                },
            };
            if !decision.is_admitted() {
                opinion.decision = decision;
                return false;
            }
        }
        true
    }

    /// Charges the rules in their turns. Where one has changed its mind none is charged.
    fn charge_all(&mut self, delay: Micros) -> bool {
        for &turn in &self.turns {
            for opinion in &mut self.scratch.opinions {
                let Some(judge) = self.rules.get_mut(opinion.rule) else { continue };
                let settled = opinion.grant.is_some() || !opinion.decision.is_admitted();
                if judge.turn != turn || settled {
                    continue;
                }
                let delay = match opinion.decision {
                    // Nobody waits for a rule in shadow.
                    Decision::Admit { wait } if opinion.shadow => wait,
                    _ => delay,
                };
                let Some(reservation) = &mut opinion.reservation else { continue };
                let decision = judge.store.charge(reservation, delay);
                if reservation.is_charged() {
                    continue;
                }
                (opinion.decision, opinion.loan) = (decision, reservation.loan());
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
            if let (Some(judge), Some(reservation)) = (judge, &mut opinion.reservation)
                && reservation.is_charged()
            {
                judge.store.undo(reservation);
            }
        }
    }

    fn judge_again(&mut self) {
        for opinion in &mut self.scratch.opinions {
            // What a rule refused it will not admit at the same instant.
            if opinion.grant.is_some() || !opinion.decision.is_admitted() {
                continue;
            }
            if let Some(judge) = self.rules.get_mut(opinion.rule) {
                opinion.judge(judge, self.scratch.now);
            }
        }
    }

    fn count(&mut self) {
        for opinion in &self.scratch.opinions {
            let Some(judge) = self.rules.get_mut(opinion.rule) else { continue };
            match opinion.decision {
                Decision::Admit { .. } => judge.counts.allowed += 1,
                Decision::Refuse { .. } => judge.counts.shadow_refused += 1,
            }
            judge.counts.held += u64::from(opinion.wait() > 0);
        }
    }
}
