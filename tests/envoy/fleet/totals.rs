//! What all gateways let through together while Redis answers, at twice the limit: never more than
//! one counter would, and nearly as much.

use std::thread;
use std::time::Duration;

use super::{Fleet, GATEWAYS, SECOND, admitted, assert_none_failed, failures};
use crate::algorithms::{bound, expected};
use crate::harness::{Histogram, Hit, OpenLoad, Shot, alone, request};

const LIMIT: u32 = 60;
const BURST: u32 = 30;
const SLOTS: u32 = 10;
const UNITS: u32 = 22;

/// As even as can be, and with nearly all at one gateway.
const SHARES: [[u32; GATEWAYS]; 2] = [[1, 1, 1], [90, 5, 5]];

/// One key for each algorithm and each way in which its requests are spread.
fn rules() -> String {
    let each = |number: usize| {
        let rule = |path, rule| {
            format!(
                "  - {{Url: /{path}/{number}, rules: [{{actor: all, unit: second, scope: global, {rule}}}]}}\n"
            )
        };
        [
            rule("window", format!("algo: W, rpu: {LIMIT}")),
            rule("sliding", format!("algo: SW, rpu: {LIMIT}")),
            rule("bucket", format!("algo: TB, rpu: {LIMIT}, burst: {BURST}")),
            rule("line", format!("algo: LB, rpu: {SLOTS}, max_delay: 300ms")),
        ]
        .concat()
    };
    format!("limits:\n{}{}", each(0), each(1))
}

/// Most that SW lets through in so many microseconds.
fn in_a_sliding_window(span: u64) -> u64 {
    if span < SECOND { LIMIT.into() } else { u64::MAX }
}

/// Most that TB lets through in so many microseconds.
fn in_a_bucket(span: u64) -> u64 {
    u64::from(BURST) + u64::from(LIMIT) * span / SECOND + 1
}

/// All requests, in the order of the answers.
fn shots(hits: &[Hit]) -> Vec<Shot> {
    let mut shots: Vec<Shot> = hits.iter().map(|hit| hit.shot).collect();
    shots.sort_by_key(|shot| shot.received);
    shots
}

/// How many per cent of what one counter would have let through were let through.
fn used(what: &str, hits: &[Hit], expected: usize) -> f64 {
    let found = admitted(hits).len();
    let used = 100.0 * found as f64 / expected as f64;
    println!("{what}: admitted {found}, expected {expected} ({used:.1} %), offered {}", hits.len());
    used
}

/// With a timeout that hardly any other work of the machine exceeds: otherwise gateways would count
/// alone for a while, of which other tests tell.
#[test]
fn never_above_the_limit_and_hardly_below() {
    alone();
    for attempt in 1..=3 {
        let fleet = Fleet::start("500ms", &rules());
        fleet.comes_together("/line/0");
        let load = |path: &str, spread: usize, rate| {
            let load = OpenLoad {
                gateways: &fleet.shared_as(SHARES[spread]),
                rate,
                lasting: Duration::from_secs(UNITS.into()),
                patience: 12,
                requests: &[request("GET", &format!("/{path}/{spread}"), &[])],
            };
            load.fire()
        };
        let loads = [
            ("window", 2 * LIMIT),
            ("sliding", 2 * LIMIT),
            ("bucket", 2 * LIMIT),
            ("line", 2 * SLOTS),
        ];
        let loads = [0, 1].map(|spread| loads.map(|(path, rate)| (path, spread, rate)));
        let hits: Vec<Vec<Hit>> = thread::scope(|scope| {
            let load = &load;
            let loads: Vec<_> = loads
                .as_flattened()
                .iter()
                .map(|(path, spread, rate)| scope.spawn(move || load(path, *spread, *rate)))
                .collect();
            loads.into_iter().map(|load| load.join().unwrap()).collect()
        });
        hits.iter().for_each(|hits| assert_none_failed(hits));
        fleet.assert_unharmed();
        if fleet.envoys.iter().any(|envoy| failures(envoy) > 0) {
            println!(
                "attempt {attempt}: the machine was so busy that Redis did not answer in time"
            );
            continue;
        }
        let late = fleet.waits().iter().map(Histogram::most).fold(0.0, f64::max) as u64;
        let mut least = 100.0_f64;
        for (spread, hits) in SHARES.iter().zip(hits.chunks(4)) {
            let [window, sliding, bucket, line] = hits else { panic!("four urls") };
            bound::in_each_window(&admitted(window), LIMIT, SECOND);
            bound::in_any_interval(&admitted(sliding), in_a_sliding_window);
            bound::in_any_interval(&admitted(bucket), in_a_bucket);
            in_line(line, late);
            let window_expected = expected::fixed_window(&shots(window), LIMIT, SECOND);
            let sliding_expected =
                expected::sliding_window(&shots(sliding), LIMIT, SECOND + SECOND / 10);
            let bucket_expected =
                expected::token_bucket(&shots(bucket), BURST.into(), SECOND / u64::from(LIMIT));
            for used in [
                used(&format!("W {spread:?}"), window, window_expected),
                used(&format!("SW {spread:?}"), sliding, sliding_expected),
                used(&format!("TB {spread:?}"), bucket, bucket_expected),
            ] {
                least = least.min(used);
            }
            println!("LB {spread:?}: admitted {} of {}", admitted(line).len(), line.len());
        }
        if least >= 95.0 {
            return;
        }
        assert!(attempt < 3, "only {least:.1} % were used");
    }
    println!("the machine was too busy to tell");
}

/// Slots are an interval apart, on the clock of Redis, whose answer may come late by so many
/// microseconds; a request leaves at most 2 ms after that.
#[track_caller]
fn in_line(hits: &[Hit], late: u64) {
    let interval = SECOND / u64::from(SLOTS);
    bound::in_any_interval(&admitted(hits), |span| (span + 2_000 + late) / interval + 1);
}
