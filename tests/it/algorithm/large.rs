//! Numbers of money and bytes: up to fifteen digits, and debts beyond them.

use diana_algorithm::{Algorithm, entry};
use diana_policy::decision::Decision;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Now, SECOND, Unit};
use diana_policy::{MAX_PERMITS, MAX_USED, Quota, Settling};
use fastrand::Rng;
use kit::seed;
use kit::store::gateway::START;

const SETTLING: Settling =
    Settling { reserve: 1, response_cost: None, count: None, bans: false, is_slot: false };

fn settle(algorithm: &dyn Algorithm, state: &mut Vec<u64>, now: Now, settlement: Settlement) {
    let mut new = vec![u64::MAX; state.len()];
    algorithm.settle(state, now, &settlement, &mut new);
    *state = new;
}

/// Debts of many requests do not overflow, and none of them frees the caller before all have
/// expired: not even the return of what was reserved before them.
#[test]
fn usage_stops_below_the_numbers_of_redis() {
    let mut rng = Rng::with_seed(seed::next());
    for _ in 0..300 {
        let (short, keeps_used) = (["W", "SW"][rng.usize(..2)], rng.bool());
        let rpu = rng.u64(1..=MAX_PERMITS);
        let quota = Quota { is_wide: true, ..Quota::new(Unit::Day, rpu) };
        let known = entry(short).unwrap();
        assert!(known.keeps_used(Some(&SETTLING)));
        let algorithm = &*known.algorithm(&quota, keeps_used).unwrap();
        let mut state = vec![0; algorithm.properties().words];
        let mut new = state.clone();
        let reserved = rng.u64(1..=rpu);
        assert_eq!(algorithm.step(&state, START, 0, reserved, &mut new), Decision::NOW);
        state.copy_from_slice(&new);
        let receipt = algorithm.receipt(&state);
        let mut now = START;
        for number in 1..=30 {
            settle(algorithm, &mut state, now, Settlement::debit(MAX_PERMITS));
            let sum = (MAX_PERMITS * number).saturating_add(reserved).min(MAX_USED);
            assert_eq!(algorithm.balance(&state, now).charged, sum, "{short} after {number}");
            now = now.later(SECOND);
        }
        settle(algorithm, &mut state, now, Settlement::refund(receipt, reserved));
        let balance = algorithm.balance(&state, now);
        assert_eq!(balance.remaining, 0, "{short}");
        assert!(balance.charged >= MAX_PERMITS, "{short}: {balance:?}");
        for _ in 0..20 {
            let later = now.later(rng.u64(..300 * SECOND));
            let step = algorithm.step(&state, later, 0, 1, &mut new);
            assert!(!step.is_admitted(), "{short} {later:?}");
        }
        // All of them have expired.
        let later = now.later(2 * 86_400 * SECOND);
        assert_eq!(algorithm.balance(&state, later).charged, 0);
        assert_eq!(algorithm.step(&state, later, 0, rpu, &mut new), Decision::NOW, "{short}");
    }
}

/// A later debt counts when an earlier one has expired, whatever their sum.
#[test]
fn each_slice_remembers_its_debts() {
    let quota = Quota { slices: Some(4), is_wide: true, ..Quota::new(Unit::Minute, 7) };
    let algorithm = &*entry("SW").unwrap().algorithm(&quota, false).unwrap();
    let mut state = vec![0; algorithm.properties().words];
    let slice = 15 * SECOND;
    // The middle of a slice.
    let start = START.later(slice / 2);
    for number in 0..4 {
        let now = start.later(number * slice);
        (0..12).for_each(|_| settle(algorithm, &mut state, now, Settlement::debit(MAX_PERMITS)));
        assert_eq!(algorithm.balance(&state, now).charged, MAX_USED);
    }
    for number in 4..8 {
        let charged = algorithm.balance(&state, start.later(number * slice)).charged;
        assert_eq!(charged, MAX_USED, "{number}");
    }
    assert_eq!(algorithm.balance(&state, start.later(8 * slice)).charged, 0);
}

/// States of ordinary rules are as small as before.
#[test]
fn only_large_numbers_need_wide_slices() {
    let words = |quota: &Quota| {
        let built = entry("SW").unwrap().algorithm(quota, false).unwrap();
        built.properties().words
    };
    assert_eq!(words(&Quota::new(Unit::Day, 1_000_000_000)), 1 + 6);
    assert_eq!(words(&Quota::new(Unit::Day, 1_000_000_001)), 1 + 11);
}
