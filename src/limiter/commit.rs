//! Charging all rules that admit a request, or none of them.

use crate::check::{Check, InProgress};
use crate::rules::{JointOutcome, Rules};
use diana_policy::decision::Retry;
use diana_policy::time::Micros;
use diana_store::CheckOutcome;
use diana_store::refusal::Reason;

/// How often other workers may win the race for a charge before the request is refused.
const ROUNDS: usize = 16;

/// Charges every rule that admits the request, for the first instant at which it may leave, by
/// the outcome of their checks.
#[inline]
pub(crate) fn commit(
    rules: &mut Rules,
    progress: &mut InProgress,
    mut outcome: JointOutcome,
) -> JointOutcome {
    for _ in 0..ROUNDS {
        let (JointOutcome::Admitted(delay) | JointOutcome::Pending(delay)) = outcome else {
            return outcome;
        };
        if delay > 0 && !can_hold(rules, progress, delay) {
            return JointOutcome::Refused;
        }
        let is_pending = outcome == JointOutcome::Pending(delay);
        if is_pending || charge_all(rules, progress, delay) {
            return outcome;
        }
        outcome = rules.check(progress);
    }
    refuse_busy(rules, progress)
}

/// Refuses a request after other workers won every race.
#[cold]
fn refuse_busy(rules: &mut Rules, progress: &mut InProgress) -> JointOutcome {
    let mut committed = JointOutcome::Admitted(0);
    for check in progress.checks.iter_mut().filter(|check| !check.is_trial()) {
        let Some(rule) = rules.list.get_mut(check.rule) else { continue };
        check.refuse(rule, Reason::Busy, Retry::After(1));
        if !check.is_shadow() {
            committed = JointOutcome::Refused;
            break;
        }
    }
    committed
}

/// Returns true if every rule can hold the request for as long as the slowest one.
#[inline(never)]
fn can_hold(rules: &mut Rules, progress: &mut InProgress, delay: Micros) -> bool {
    let shorter = |check: &&mut Check| !check.is_shadow() && check.wait() < delay;
    for check in progress.checks.iter_mut().filter(shorter) {
        if let CheckOutcome::Admitted { longest_delay, .. } = check.reservation.outcome
            && let late = delay.saturating_sub(longest_delay)
            && late > 0
            && let Some(rule) = rules.list.get_mut(check.rule)
        {
            check.refuse(rule, Reason::Used, Retry::After(late));
            return false;
        }
    }
    true
}

/// Charges the rules, phase by phase. If one of them no longer admits the request, cancels the
/// charges made here and returns false.
#[inline]
fn charge_all(rules: &mut Rules, progress: &mut InProgress, delay: Micros) -> bool {
    for &phase in &rules.phases {
        for check in &mut progress.checks {
            let Some(rule) = rules.list.get_mut(check.rule) else { continue };
            // An authority has charged its rules before.
            if rule.phase != phase || check.is_refused() || check.reservation.is_granted() {
                continue;
            }
            // A rule in shadow does not hold the request.
            let delay = if check.is_shadow() { check.wait_without_shadow() } else { delay };
            rule.store.charge(&mut check.reservation, delay);
            if !check.reservation.is_charged() && !check.is_trial() {
                cancel_all(rules, progress);
                return false;
            }
        }
    }
    true
}

/// Cancels the charges made by [`charge_all`].
#[inline(never)]
fn cancel_all(rules: &mut Rules, progress: &mut InProgress) {
    for check in progress.checks.iter_mut().rev() {
        if !check.reservation.is_granted()
            && let Some(rule) = rules.list.get_mut(check.rule)
        {
            check.cancel(rule);
        }
    }
}
