//! Cancelled charges.

use diana_algorithm::{Algorithm, Entry};
use diana_policy::decision::{Decision, Retry};
use diana_policy::settlement::Settlement;
use diana_policy::time::Now;
use fastrand::Rng;

use super::case::Case;
use super::{equivalence, stream};
use crate::oracle::{Admission, oracle};

/// `charged` is the state `old` after a charge of `cost` at `now`. After the cancellation all
/// decisions equal those without the charge.
pub fn restores(case: &Case, old: &[u64], charged: &[u64], now: Now, cost: u64, rng: &mut Rng) {
    let algorithm = &*case.algorithm;
    let mut back = vec![u64::MAX; old.len()];
    let refund = Settlement::refund(algorithm.receipt(charged), cost);
    algorithm.settle(charged, now, &refund, &mut back);
    let is_nobody = old.iter().all(|word| *word == 0);
    // A state without usage must not depend on the wall clock.
    let back_in_time = if is_nobody { rng.u64(0..3 * case.quota.period()) } else { 0 };
    let now = Now { wall: now.wall.saturating_sub(back_in_time), ..now };
    let arrivals = stream::from(now, case, rng, 6);
    if case.quota.warm_up.is_some() {
        no_sooner(algorithm, old, &back, arrivals);
    } else {
        equivalence::decide(algorithm, old, &back, arrivals);
    }
}

/// For states that do not identify a charge: after the cancellation no request is admitted earlier
/// than without the charge.
fn no_sooner(algorithm: &dyn Algorithm, old: &[u64], back: &[u64], arrivals: Vec<(Now, u64)>) {
    for (now, cost) in arrivals {
        let turn =
            |state: &[u64]| match algorithm.step(state, now, 0, cost, &mut vec![0; state.len()]) {
                Decision::Admit { wait } => (false, Retry::After(wait)),
                Decision::Refuse { retry } => (true, retry),
            };
        assert!(turn(back) >= turn(old), "a refund gave more than was charged");
    }
}

/// A charge is cancelled after other charges. There are never more permits than without it, and not
/// fewer if no time has passed, except in a queue.
pub fn amid_others(case: &Case, rng: &mut Rng) {
    let algorithm = &*case.algorithm;
    if case.quota.warm_up.is_some() {
        // A charge advances the warm-up, so later requests may be admitted earlier.
        return;
    }
    let mut without = vec![0; algorithm.properties().words];
    let mut new = without.clone();
    let mut arrivals = stream::random(case, rng, 40).into_iter();
    for (now, cost) in arrivals.by_ref().take(20) {
        if algorithm.step(&without, now, 0, cost, &mut new).is_admitted() {
            without.copy_from_slice(&new);
        }
    }
    let Some((since, charge)) = arrivals.next() else { return };
    let mut with = without.clone();
    if algorithm.step(&without, since, 0, charge, &mut with) != Decision::NOW {
        return;
    }
    let receipt = algorithm.receipt(&with);
    let mut at = since;
    for (now, cost) in arrivals.take(rng.usize(0..6)) {
        at = now;
        if algorithm.step(&with, now, 0, cost, &mut new).is_admitted() {
            with.copy_from_slice(&new);
            assert!(algorithm.step(&without, now, 0, cost, &mut new).is_admitted());
            without.copy_from_slice(&new);
        }
    }
    let unused = Settlement { receipt, since: since.mono, reserved: charge, used: 0 };
    algorithm.settle(&with, at, &unused, &mut new);
    let [back, never] = [&new, &without].map(|state| algorithm.balance(state, at).remaining);
    assert!(back <= never, "{back} left instead of {never}");
    let is_line = algorithm.spend_by(&new, at).is_none();
    assert!(at != since || is_line || back == never, "{back} left instead of {never}");
}

/// Some requests of a queue leave before their turn. The departures of the others keep the bound.
pub fn in_a_queue(entry: &Entry, case: &Case, rng: &mut Rng) {
    let algorithm = &*case.algorithm;
    let mut state = vec![0; algorithm.properties().words];
    let mut new = state.clone();
    let mut past: Vec<Admission> = Vec::new();
    let mut receipts = Vec::new();
    for (now, cost) in stream::random(case, rng, 100) {
        let waiting = past.partition_point(|one| one.leaves <= now.mono);
        if waiting < past.len() && rng.u8(0..3) == 0 {
            let gone = rng.usize(waiting..past.len());
            let cost = past.remove(gone).cost;
            let refund = Settlement::refund(receipts.remove(gone), cost);
            algorithm.settle(&state, now, &refund, &mut new);
            std::mem::swap(&mut state, &mut new);
        }
        if let Decision::Admit { wait } = algorithm.step(&state, now, 0, cost, &mut new) {
            std::mem::swap(&mut state, &mut new);
            if algorithm.spend_by(&state, now).is_some() {
                return;
            }
            past.push(Admission { at: now, leaves: now.mono + wait, cost });
            receipts.push(algorithm.receipt(&state));
        }
    }
    oracle(entry.short).check_departures(&case.quota, past);
}
