//! Charging all rules that admit a request, or none of them.

use crate::check::{Check, InProgress};
use crate::rules::Rules;
use diana_algorithm::Leasing;
use diana_policy::decision::Retry;
use diana_policy::time::Micros;
use diana_policy::{Rule, Scope};
use diana_store::CheckOutcome;
use diana_store::refusal::Reason;

/// How often other workers may win the race for a charge before the request is refused.
const ROUNDS: usize = 16;

/// The order in which a commit charges rules. States that other workers change come first, those
/// with the charges that are easiest to cancel at the start; then states of this worker; then
/// charges that cannot be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChargePhase {
    /// Shared windows.
    SharedWindow,
    /// Shared buckets, which refill between check and charge.
    SharedBucket,
    /// Shared queues, of which only the last position can be returned.
    SharedQueue,
    /// States of this worker.
    Local,
    /// Daily quotas, which cannot cancel a charge.
    Quota,
}

impl ChargePhase {
    /// Returns true if workers lease permits, which they have to return soon.
    pub(crate) fn leases(self) -> bool {
        matches!(self, ChargePhase::SharedWindow | ChargePhase::SharedBucket)
    }

    pub(crate) const ALL: [ChargePhase; 5] = [
        ChargePhase::SharedWindow,
        ChargePhase::SharedBucket,
        ChargePhase::SharedQueue,
        ChargePhase::Local,
        ChargePhase::Quota,
    ];

    pub(crate) fn of(rule: &Rule, leasing: Leasing) -> ChargePhase {
        match leasing {
            _ if rule.daily.is_some() => ChargePhase::Quota,
            _ if rule.scope == Scope::Local => ChargePhase::Local,
            Leasing::Never => ChargePhase::SharedQueue,
            Leasing::Bucket => ChargePhase::SharedBucket,
            Leasing::Window => ChargePhase::SharedWindow,
        }
    }
}

/// The outcome of all rules together: of their checks, and then of the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JointOutcome {
    /// Every rule admits the request, and has charged it after a commit. It may proceed this many
    /// ticks after its check.
    Admitted(Micros),
    /// A rule refuses. Only an authority may have charged its rules; the other rules are not
    /// charged.
    Refused,
    /// An authority must be asked. Other rules hold the request for this many ticks.
    Pending(Micros),
}

impl Rules {
    /// Charges every rule that admits the request, for the first instant at which it may leave, by
    /// the outcome of their checks.
    pub(crate) fn commit(
        &mut self,
        progress: &mut InProgress,
        mut outcome: JointOutcome,
    ) -> JointOutcome {
        for _ in 0..ROUNDS {
            let (JointOutcome::Admitted(delay) | JointOutcome::Pending(delay)) = outcome else {
                return outcome;
            };
            if delay > 0 && !self.can_hold(progress, delay) {
                return JointOutcome::Refused;
            }
            let is_pending = outcome == JointOutcome::Pending(delay);
            if is_pending || self.charge_all(progress, delay) {
                return outcome;
            }
            outcome = self.check(progress);
        }
        // Other workers won every race.
        let mut committed = JointOutcome::Admitted(0);
        for check in progress.checks.iter_mut().filter(|check| !check.is_trial()) {
            let Some(rule) = self.list.get_mut(check.rule) else { continue };
            check.refuse(rule, Reason::Busy, Retry::After(1));
            if !check.is_shadow() {
                committed = JointOutcome::Refused;
                break;
            }
        }
        committed
    }

    /// Returns true if every rule can hold the request for as long as the slowest one.
    fn can_hold(&mut self, progress: &mut InProgress, delay: Micros) -> bool {
        let shorter = |check: &&mut Check| !check.is_shadow() && check.wait() < delay;
        for check in progress.checks.iter_mut().filter(shorter) {
            if let CheckOutcome::Admitted { longest_delay, .. } = check.reservation.outcome
                && let late = delay.saturating_sub(longest_delay)
                && late > 0
                && let Some(rule) = self.list.get_mut(check.rule)
            {
                check.refuse(rule, Reason::Used, Retry::After(late));
                return false;
            }
        }
        true
    }

    /// Charges the rules, phase by phase. If one of them no longer admits the request, cancels the
    /// charges made here and returns false.
    fn charge_all(&mut self, progress: &mut InProgress, delay: Micros) -> bool {
        for &phase in &self.phases {
            for check in &mut progress.checks {
                let Some(rule) = self.list.get_mut(check.rule) else { continue };
                // An authority has charged its rules before.
                if rule.phase != phase || check.is_refused() || check.reservation.is_granted() {
                    continue;
                }
                // A rule in shadow does not hold the request.
                let delay = if check.is_shadow() { check.wait_without_shadow() } else { delay };
                rule.store.charge(&mut check.reservation, delay);
                if !check.reservation.is_charged() && !check.is_trial() {
                    self.cancel_all(progress);
                    return false;
                }
            }
        }
        true
    }

    /// Cancels the charges made by [`Rules::charge_all`].
    fn cancel_all(&mut self, progress: &mut InProgress) {
        for check in progress.checks.iter_mut().rev() {
            if !check.reservation.is_granted()
                && let Some(rule) = self.list.get_mut(check.rule)
            {
                check.cancel(rule);
            }
        }
    }
}
