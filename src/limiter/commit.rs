//! Charging all rules that admit a request, or none of them.

use crate::check::{Basis, Check, CheckOutcome, InProgress};
use crate::report::Reason;
use crate::rules::Rules;
use diana_algorithm::Leasing;
use diana_policy::decision::{Decision, Retry};
use diana_policy::time::Micros;
use diana_policy::{Rule, Scope};

/// How often other workers may win the race for a charge before the request is refused.
const ROUNDS: usize = 16;

/// When a rule is charged. States that other workers change come first, in the order in which their charges are easier to
/// undo; then states of this worker; then states without undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Shared windows.
    SharedWindow,
    /// Shared buckets, which refill between check and charge.
    SharedBucket,
    /// Shared queues, of which only the last position can be returned.
    SharedQueue,
    /// States of this worker.
    Local,
    /// Daily quotas, which cannot be undone.
    Quota,
}

impl Turn {
    /// Returns true if workers lease permits, which they have to return soon.
    pub(crate) fn lends(self) -> bool {
        matches!(self, Turn::SharedWindow | Turn::SharedBucket)
    }

    pub(crate) const ALL: [Turn; 5] =
        [Turn::SharedWindow, Turn::SharedBucket, Turn::SharedQueue, Turn::Local, Turn::Quota];

    pub(crate) fn of(rule: &Rule, leasing: Leasing) -> Turn {
        match leasing {
            _ if rule.daily.is_some() => Turn::Quota,
            _ if rule.scope == Scope::Local => Turn::Local,
            Leasing::Never => Turn::SharedQueue,
            Leasing::Bucket => Turn::SharedBucket,
            Leasing::Window => Turn::SharedWindow,
        }
    }
}

/// The result of a commit.
pub(crate) enum Committed {
    /// Every rule was charged. The request may proceed this many ticks after its check.
    Admitted(Micros),
    /// A rule refuses, and none was charged.
    Refused,
    /// Redis must be asked. Other rules hold the request for this many ticks.
    Pending(Micros),
}

impl Rules {
    /// Charges every rule that admits the request, for the first instant at which it may leave.
    pub(crate) fn commit(&mut self, progress: &mut InProgress) -> Committed {
        for _ in 0..ROUNDS {
            let (mut delay, mut is_pending) = (0, false);
            for check in &progress.checks {
                match &check.outcome {
                    CheckOutcome::Pending => is_pending = true,
                    // A rule in shadow neither holds nor refuses.
                    _ if check.shadow => {}
                    CheckOutcome::Admits { wait, .. } => delay = delay.max(*wait),
                    CheckOutcome::Refuses(_) => return Committed::Refused,
                    CheckOutcome::Unchecked => {}
                }
            }
            if delay > 0 && !self.can_hold(progress, delay) {
                return Committed::Refused;
            }
            if is_pending {
                return Committed::Pending(delay);
            }
            if self.charge_all(progress, delay) {
                return Committed::Admitted(delay);
            }
            self.check_again(progress);
        }
        // Other workers won every race.
        let own = progress.checks.iter_mut().find(|check| !check.shadow);
        if let Some(check) = own
            && let Some(rule) = self.list.get_mut(check.rule)
        {
            check.refuse(rule, Reason::Busy, Retry::After(1));
        }
        Committed::Refused
    }

    /// Returns true if every rule can hold the request for as long as the slowest one.
    fn can_hold(&mut self, progress: &mut InProgress, delay: Micros) -> bool {
        let shorter = |check: &&mut Check| !check.shadow && check.wait() < delay;
        for check in progress.checks.iter_mut().filter(shorter) {
            let Some(rule) = self.list.get_mut(check.rule) else { continue };
            let CheckOutcome::Admits { by, .. } = &check.outcome else { continue };
            let late = match by {
                Basis::Store(found) => delay.saturating_sub(found.longest_delay),
                // Redis charged it for an earlier instant, which a queue does not change.
                Basis::Redis(_) if rule.redis_store(check.plan).is_some_and(|it| it.holds()) => 1,
                Basis::Redis(_) | Basis::Agreed(_) => 0,
            };
            if late > 0 {
                check.refuse(rule, Reason::Used, Retry::After(late));
                return false;
            }
        }
        true
    }

    /// Charges the rules in their turns. Returns false if one of them does not admit any more; then none is charged.
    fn charge_all(&mut self, progress: &mut InProgress, delay: Micros) -> bool {
        for &turn in &self.turns {
            for check in &mut progress.checks {
                let Some(rule) = self.list.get_mut(check.rule) else { continue };
                if rule.turn != turn {
                    continue;
                }
                let CheckOutcome::Admits { wait, by: Basis::Store(found) } = &mut check.outcome
                else {
                    continue;
                };
                // A rule in shadow does not hold the request.
                let delay = if check.shadow { *wait } else { delay };
                let decision = rule.store.charge(found, delay);
                if found.is_charged() {
                    continue;
                }
                match decision {
                    Decision::Admit { wait: longer } => *wait = longer,
                    Decision::Refuse { retry } => {
                        check.refuse(rule, Reason::Used, retry);
                    }
                }
                if !check.shadow {
                    self.undo(progress);
                    return false;
                }
            }
        }
        true
    }

    fn undo(&mut self, progress: &mut InProgress) {
        for check in progress.checks.iter_mut().rev() {
            let rule = self.list.get_mut(check.rule);
            if let (Some(rule), CheckOutcome::Admits { by: Basis::Store(found), .. }) =
                (rule, &mut check.outcome)
                && found.is_charged()
            {
                rule.store.cancel(found);
            }
        }
    }

    fn check_again(&mut self, progress: &mut InProgress) {
        for check in &mut progress.checks {
            // A refusal stays: the instant is the same.
            if let CheckOutcome::Admits { by: Basis::Store(_), .. } = check.outcome
                && let Some(rule) = self.list.get_mut(check.rule)
            {
                check.check(rule, progress.now);
            }
        }
    }
}
