//! A state that has expired may be dropped: it decides like that of a new caller. And a charge that comes back at once leaves
//! nothing.

use diana_algorithm::Algorithm;
use diana_policy::decision::Decision;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};
use kit::choices::Choices;

use super::case::Case;

const COSTS: [u64; 2] = [1, 2];

/// Requests after the expiry.
const LATER: [u64; 4] = [1, 2, 1, 1];

/// A trace of requests, of which the latest may be cancelled, and of time.
pub fn world(case: &Case, events: usize, choices: &mut Choices) {
    let (algorithm, quota) = (&*case.specs[0].algorithm, &case.quotas[0][0]);
    let unit = quota.period();
    let mut state = vec![0; algorithm.properties().words];
    let (mut now, mut latest) = (case.start, None);
    for _ in 0..events {
        let waits = [unit / 7, unit, 3 * unit];
        let acts = COSTS.len() + 1 + waits.len();
        let act = choices.pick(acts);
        if let Some(cost) = COSTS.get(act) {
            let charged = step(algorithm, &mut state, now, *cost);
            latest = charged.is_admitted().then(|| (algorithm.receipt(&state), *cost));
        } else if let Some(ticks) = act.checked_sub(COSTS.len() + 1) {
            now = now.later(waits[ticks]);
        } else if let Some((receipt, cost)) = latest.take() {
            let refund = Settlement { since: now.mono, ..Settlement::refund(receipt, cost) };
            let old = state.clone();
            algorithm.settle(&old, now, &refund, &mut state);
        }
    }
    // A charge that comes back at once leaves nothing.
    for cost in COSTS {
        let mut charged = state.clone();
        if step(algorithm, &mut charged, now, cost).is_admitted() {
            let receipt = algorithm.receipt(&charged);
            let refund = Settlement { since: now.mono, ..Settlement::refund(receipt, cost) };
            let mut back = charged.clone();
            algorithm.settle(&charged, now, &refund, &mut back);
            let (before, after) =
                (later(algorithm, state.clone(), now), later(algorithm, back, now));
            assert_eq!(before, after, "after a charge of {cost} came back");
        }
    }
    let expires = algorithm.expires(&state, now);
    let then = now.later(expires.saturating_sub(now.mono));
    let known = later(algorithm, state, then);
    let new = later(algorithm, vec![0; algorithm.properties().words], then);
    assert_eq!(known, new, "after the expiry");
}

fn step(algorithm: &dyn Algorithm, state: &mut Vec<u64>, now: Now, cost: u64) -> Decision {
    let mut new = state.clone();
    let decision = algorithm.step(state, now, 0, cost, &mut new);
    if decision.is_admitted() {
        *state = new;
    }
    decision
}

/// The decisions about requests that come together, and the permits that remain after each.
fn later(
    algorithm: &dyn Algorithm,
    mut state: Vec<u64>,
    now: Now,
) -> Vec<(Decision, u64, Option<Micros>)> {
    let decide = |cost: &u64| {
        let decision = step(algorithm, &mut state, now, *cost);
        let balance = algorithm.balance(&state, now);
        (decision, balance.remaining, balance.renewal)
    };
    LATER.iter().map(decide).collect()
}
