//! Several workers count together: W, SW and TB at once in one Envoy, each on a path of its own and
//! under a load of three times its limit, from 200 connections.

use super::{LIMIT, SECOND, assert_generous, bound, expected};
use crate::harness::{Gateway, Load, Shot, alone};

const RULES: &str = "
limits:
  - Url: /window
    rules: [{actor: all, unit: second, rpu: 200, algo: W}]
  - Url: /sliding
    rules: [{actor: all, unit: second, rpu: 200, algo: SW}]
  - Url: /bucket
    rules: [{actor: all, unit: second, rpu: 200, algo: TB, burst: 100}]
";

fn overload(workers: u32, seconds: u32) {
    alone();
    let envoy = Gateway::with(RULES).workers(workers).start();
    let paths = &["/window", "/sliding", "/bucket"];
    let shots = Load { connections: 200, rate: 9 * LIMIT, seconds, paths }.fire(envoy.port);
    envoy.assert_unharmed();
    for shot in &shots {
        assert!([200, 503].contains(&shot.status), "neither admitted nor refused: {shot:?}");
    }
    let of = |path| shots.iter().filter(|shot| shot.path == path).copied().collect::<Vec<Shot>>();
    let offered = [of(0), of(1), of(2)];
    for shots in &offered {
        let least = 2 * LIMIT * seconds;
        assert!(shots.len() > least as usize, "the load was too small: {}", shots.len());
    }
    let [window, sliding, bucket] = &offered;
    println!("{workers} workers, {seconds} s");
    bound::in_each_window(&super::admitted(window), LIMIT, SECOND);
    assert_generous(window, expected::fixed_window(window, LIMIT, SECOND), 97);
    bound::in_any_interval(&super::admitted(sliding), super::in_a_sliding_window);
    // A permit comes back with its slice.
    assert_generous(sliding, expected::sliding_window(sliding, LIMIT, SECOND + SECOND / 10), 97);
    bound::in_any_interval(&super::admitted(bucket), super::in_a_bucket);
    assert_generous(bucket, expected::token_bucket(bucket, 100, SECOND / u64::from(LIMIT)), 97);
}

#[test]
fn four_workers() {
    overload(4, 30);
}

#[test]
fn two_workers() {
    overload(2, 5);
}

#[test]
fn eight_workers() {
    overload(8, 5);
}
