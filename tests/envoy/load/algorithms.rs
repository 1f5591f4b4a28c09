//! Each algorithm that refuses under a load of five times its limit, from 100 connections, on one worker.

pub mod bound;
pub mod expected;
mod gateway;

use crate::harness::{Gateway, Load, Shot, alone};

const LIMIT: u32 = 200;
const SECOND: u64 = 1_000_000;

/// Fires the load at one rule and returns every request of it.
fn overload(rule: &str) -> Vec<Shot> {
    alone();
    let envoy = Gateway::with(&format!(
        "limits: [{{Url: /, rules: [{{name: only, actor: all, unit: second, rpu: {LIMIT}, scope: local, {rule}}}]}}]"
    ))
    .start();
    let load = Load { connections: 100, rate: 5 * LIMIT, seconds: 10, paths: &["/"] };
    let shots = load.fire(envoy.port);
    envoy.assert_unharmed();
    for shot in &shots {
        assert!([200, 503].contains(&shot.status), "neither admitted nor refused: {shot:?}");
    }
    let offered = shots.len();
    assert!(offered > 6_000, "the load generator was too slow: {offered} requests");
    shots
}

/// The requests that were let through.
fn admitted(shots: &[Shot]) -> Vec<Shot> {
    shots.iter().filter(|shot| shot.status == 200).copied().collect()
}

/// Fails if less than `share` per cent of what was expected has been let through.
#[track_caller]
fn assert_generous(shots: &[Shot], expected: usize, share: usize) {
    let found = admitted(shots).len();
    println!("admitted {found}, expected {expected}, offered {}", shots.len());
    assert!(100 * found >= share * expected, "admitted {found}, less than {share} % of {expected}");
}

#[test]
fn fixed_window() {
    let shots = overload("algo: W");
    bound::in_each_window(&admitted(&shots), LIMIT, SECOND);
    assert_generous(&shots, expected::fixed_window(&shots, LIMIT, SECOND), 97);
}

#[test]
fn sliding_window() {
    let shots = overload("algo: SW, slices: 10");
    bound::in_any_interval(&admitted(&shots), in_a_sliding_window);
    assert_generous(&shots, expected::sliding_window(&shots, LIMIT, SECOND + SECOND / 10), 97);
}

#[test]
fn token_bucket() {
    let shots = overload("algo: TB, burst: 100");
    bound::in_any_interval(&admitted(&shots), in_a_bucket);
    assert_generous(&shots, expected::token_bucket(&shots, 100, SECOND / u64::from(LIMIT)), 97);
}

/// Most that SW lets through in so many microseconds.
fn in_a_sliding_window(span: u64) -> u64 {
    if span < SECOND { u64::from(LIMIT) } else { u64::MAX }
}

/// Most that TB lets through in so many microseconds.
fn in_a_bucket(span: u64) -> u64 {
    100 + u64::from(LIMIT) * span / SECOND + 1
}
