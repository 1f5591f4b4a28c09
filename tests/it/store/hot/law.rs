//! Every key above twice `over` is found and none below half of it, for up to 400 × `over` requests
//! in `per`.

use diana_policy::time::SECOND;
use fastrand::Rng;

use super::workers::{OVER, PER, Workers};
use kit::seed;

/// The number of requests in `per` that the law covers.
const MOST: u64 = 400 * OVER;

/// Runs some windows. `draw` selects the next caller, and whether it is remembered.
fn run(
    name: &str,
    workers: usize,
    requests: u64,
    mut draw: impl FnMut(&mut Rng, u64) -> (u64, bool),
) -> Workers {
    let seed = seed::next();
    let mut rng = Rng::with_seed(seed);
    let mut crowd = Workers::new(seed, workers);
    let windows = 3;
    // In steps of a hundredth of a second.
    let steps = PER / (SECOND / 100);
    for step in 0..windows * steps {
        let from = requests * step / steps;
        for number in from..requests * (step + 1) / steps {
            let (key, remember) = draw(&mut rng, number);
            crowd.see(key, remember);
        }
        crowd.pass(SECOND / 100);
    }
    println!(
        "{name}: {workers} workers, {} requests, {} keys were hot, counts at most {} too low",
        crowd.requests,
        crowd.hot_keys(),
        crowd.missed
    );
    let list = crowd.list.clone();
    assert!(list.is_none_or(|list| list.top.iter().all(|top| top.1 > OVER)));
    crowd.pass(2 * PER);
    assert!(crowd.is_calm(), "{name}: hot without requests");
    crowd
}

/// The key of a number, distributed like a hash.
fn key(number: u64) -> u64 {
    Rng::with_seed(number).u64(..)
}

/// A rank with a Zipf distribution: the n-th key is n times as rare as the first.
fn zipf(rng: &mut Rng, keys: u64) -> u64 {
    let exponent = rng.f64() * (keys as f64).ln();
    exponent.exp() as u64
}

#[test]
fn hot_keys_of_all_frequencies_are_found() {
    for workers in [1, 4] {
        let crowd = run("zipf", workers, 100_000, |rng, _| (key(zipf(rng, 100_000)), true));
        assert!(crowd.hot_keys() > 5, "{}", crowd.hot_keys());
    }
}

#[test]
fn million_single_requests_hide_no_hot_key() {
    for workers in [1, 4] {
        // Three windows with four hot keys.
        let crowd = run("flood", workers, MOST, |rng, number| match rng.u64(0..300) {
            heavy @ 0..4 => (key(heavy), true),
            _ => (key(1_000_000 + number), false),
        });
        assert_eq!(crowd.hot_keys(), 4);
    }
}

#[test]
fn million_simultaneous_keys_hide_no_hot_key() {
    let seed = seed::next();
    for workers in [1, 4] {
        let mut crowd = Workers::new(seed, workers);
        let mut rng = Rng::with_seed(seed);
        // More requests than the law covers: hot keys are still found if they are frequent enough.
        for number in 0..1_000_000 {
            crowd.see(key(5_000_000 + number), false);
            if number % 10 == 0 {
                crowd.see(key(rng.u64(0..20)), true);
            }
            if number % 1_000 == 0 {
                crowd.pass(SECOND / 1_000);
            }
        }
        crowd.pass(PER);
        let list = crowd.list.clone().map(|list| list.top.len());
        println!("at once: {} keys hot, {list:?} listed", crowd.hot_keys());
        assert_eq!((crowd.hot_keys(), list), (20, Some(20)));
    }
}

#[test]
fn alternating_bursts_hide_no_hot_key() {
    // Each key has several requests in a row, just too few to be hot, and no more. One has requests
    // all the time.
    for (workers, often) in [(1, 3), (1, OVER / 3), (4, 50), (4, OVER / 3)] {
        let crowd = run("turns", workers, MOST, |rng, number| match rng.u64(0..MOST) {
            heavy if heavy < OVER * 5 / 2 => (key(heavy % 2), true),
            _ => (key(2 + number / often), often > 100),
        });
        assert!(crowd.hot_keys() <= 2, "{}", crowd.hot_keys());
    }
}

#[test]
fn steady_key_below_a_burst_is_found() {
    let mut crowd = Workers::new(seed::next(), 1);
    // The maximum number of callers, which have requests for a while and then none.
    for number in 0..2_048 {
        (0..20).for_each(|_| crowd.see(key(1 + number), true));
    }
    crowd.pass(SECOND / 5);
    // Fewer requests between two additions than those, but all the time.
    for _ in 0..PER / (SECOND / 50) * 9 / 10 {
        (0..3).for_each(|_| crowd.see(key(0), true));
        crowd.pass(SECOND / 50);
    }
    assert_eq!(crowd.hot_keys(), 1);
}

#[test]
fn list_appears_once_per_period_with_every_hot_key() {
    let mut crowd = Workers::new(seed::next(), 3);
    for burst in 0..40 {
        // All at once, and no more.
        (0..2 * OVER + 1).for_each(|_| crowd.see(key(burst), true));
        let reported = crowd.reported.len();
        crowd.pass(PER + SECOND / 5);
        assert!(crowd.reported.len() > reported, "burst {burst} was not reported within `per`");
        let list = crowd.list.clone().unwrap();
        assert!(list.top.iter().any(|top| top.0 == key(burst)), "burst {burst}: {list:?}");
    }
    assert!(crowd.reported.len() as u64 <= 40 * 6 / 5 + 2, "{}", crowd.reported.len());
}
