//! The laws of every algorithm in the registry. A new algorithm is covered without a new test,
//! except for its row in `oracle.rs`.
//!
//! `tests/wasm` runs the same laws on 32 bits.

pub mod bound;
pub mod case;
mod equivalence;
mod lease;
mod refund;
mod reserve;
mod settle;
pub mod stream;

use crate::oracle::oracle;
use case::Case;
use diana_algorithm::{Algorithm, Capabilities, Entry, Leasing, REGISTRY};
use diana_policy::MAX_PERMITS;
use diana_policy::decision::{Decision, Retry};
use diana_policy::time::Now;
use fastrand::Rng;

/// Checks all laws on `cases` random configurations of each algorithm.
pub fn hold(seed: u64, cases: u64) {
    for entry in REGISTRY {
        for number in 0..cases {
            let seed = seed.wrapping_add(number);
            let mut rng = Rng::with_seed(seed);
            let case = Case::random(entry, &mut rng);
            println!("{} seed {seed}: {:?}", entry.short, case.quota);
            it_does_what_it_can(entry, &case, &mut rng);
            bound::holds(entry, &case, &mut rng);
            along_a_stream(entry, &case, &mut rng);
            lease::holds(entry, &case, &mut rng);
            reserve::holds(entry, &case, &mut rng);
            reserve::of_two_rules(entry, &case, &mut rng);
            refund::amid_others(&case, &mut rng);
            refund::in_a_queue(entry, &case, &mut rng);
            settle::holds(entry, &case, &mut rng);
        }
    }
}

/// An algorithm has exactly the capabilities of its registry entry.
fn it_does_what_it_can(entry: &Entry, Case { quota, algorithm }: &Case, rng: &mut Rng) {
    let Capabilities { holds, leasing, .. } = (entry.capabilities)(quota);
    assert_eq!(holds, oracle(entry.short).max_delay(quota) > 0);
    let nobody = vec![0; algorithm.properties().words];
    assert_eq!(algorithm.expires(&nobody, Now::default()), 0, "nobody's state is to be kept");
    let is_leased = algorithm.spend_by(&nobody, Now::default()).is_some();
    assert_eq!(is_leased, leasing != Leasing::Never);
    let is_bucket = is_leased && algorithm.properties().most_out < u64::MAX;
    assert_eq!(is_bucket, leasing == Leasing::Bucket);
    let most = algorithm.properties().most_at_once;
    for cost in [most, most.saturating_add(1), rng.u64(1..=MAX_PERMITS)] {
        if (1..=MAX_PERMITS).contains(&cost) {
            let first = algorithm.step(&nobody, Now::default(), 0, cost, &mut nobody.clone());
            assert_eq!(first == Decision::NEVER, cost > most, "{cost} of {most}");
        }
    }
}

/// Checks every decision about a random sequence of requests of one caller.
fn along_a_stream(entry: &Entry, case: &Case, rng: &mut Rng) {
    let algorithm = &*case.algorithm;
    let mut state = vec![0; algorithm.properties().words];
    for (now, cost) in stream::random(case, rng, 200) {
        remaining_is_true(entry, algorithm, &state, now, case);
        forgetting_loses_nothing(algorithm, &state, now, case, rng);
        time_stepping_back_refunds_nothing(algorithm, &state, now, rng);
        let mut new = vec![u64::MAX; state.len()];
        match algorithm.step(&state, now, 0, cost, &mut new) {
            Decision::Admit { .. } => {
                refund::restores(case, &state, &new, now, cost, rng);
                state = new;
            }
            Decision::Refuse { retry } => {
                assert!(new.iter().all(|word| *word == u64::MAX), "a refusal wrote a state");
                wait_is_honest(algorithm, &state, now, cost, retry);
            }
        }
    }
}

fn step(algorithm: &dyn Algorithm, state: &[u64], now: Now, cost: u64) -> Decision {
    algorithm.step(state, now, 0, cost, &mut vec![0; state.len()])
}

fn wait_is_honest(algorithm: &dyn Algorithm, state: &[u64], now: Now, cost: u64, retry: Retry) {
    match retry {
        // Beyond the range of the clock.
        Retry::After(u64::MAX) => {}
        Retry::After(wait) => {
            assert!(wait > 0, "a refusal without a wait at {now:?}");
            let then = now.later(wait);
            let early = now.later(wait - 1);
            assert!(step(algorithm, state, then, cost).is_admitted(), "{wait} is too early");
            assert!(!step(algorithm, state, early, cost).is_admitted(), "{wait} is too late");
        }
        Retry::Soon => panic!("nothing is told apart here"),
        Retry::Never => {
            let nobody = vec![0; state.len()];
            for far in [0, 1 << 30, 1 << 50] {
                let decision = step(algorithm, &nobody, now.later(far), cost);
                assert_eq!(decision, Decision::NEVER, "a cost that never fits fitted");
            }
        }
    }
}

fn remaining_is_true(
    entry: &Entry,
    algorithm: &dyn Algorithm,
    state: &[u64],
    now: Now,
    case: &Case,
) {
    let left = algorithm.balance(state, now).remaining;
    if left > 0 {
        assert_eq!(step(algorithm, state, now, left), Decision::NOW, "{left} were promised");
    }
    // A slot admits a request of any cost.
    let takes_any = oracle(entry.short).burst(&case.quota) == 0;
    if !takes_any || case.quota.rpu == 0 {
        assert_ne!(step(algorithm, state, now, left + 1), Decision::NOW, "{left} is too few");
    }
}

fn forgetting_loses_nothing(
    algorithm: &dyn Algorithm,
    state: &[u64],
    now: Now,
    case: &Case,
    rng: &mut Rng,
) {
    let expires = algorithm.expires(state, now);
    if expires == u64::MAX {
        return;
    }
    let start = now.later(expires.saturating_sub(now.mono));
    let nobody = vec![0; state.len()];
    equivalence::decide(algorithm, state, &nobody, stream::from(start, case, rng, 8));
}

fn time_stepping_back_refunds_nothing(
    algorithm: &dyn Algorithm,
    state: &[u64],
    now: Now,
    rng: &mut Rng,
) {
    let left = algorithm.balance(state, now).remaining;
    let back = rng.u64(0..7_200_000_000);
    let early = Now { mono: now.mono.saturating_sub(back), wall: now.wall.saturating_sub(back) };
    let by_wall = Now { mono: now.mono, ..early };
    let by_mono = Now { wall: now.wall, ..early };
    for then in [early, by_wall, by_mono, Now::default()] {
        assert!(
            algorithm.balance(state, then).remaining <= left,
            "a clock that stepped back refunded"
        );
        step(algorithm, state, then, 1);
    }
}
