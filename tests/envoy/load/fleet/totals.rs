//! What all gateways let through together while Redis answers, at twice the limit: never more than
//! one counter would, and nearly as much.

use std::thread;
use std::time::Duration;

use super::modes::{Alone, Modes, alone_within, without_cause};
use super::{Fleet, GATEWAYS, SECOND, admitted, assert_none_failed};
use crate::harness::{
    Clock, Complaint, Histogram, Hit, OpenLoad, Shot, alone, request, try_until_undisturbed,
};
use crate::load::algorithms::{bound, expected};

/// What the gateways wait for Redis, in microseconds.
const TIMEOUT: u64 = 500_000;

const LIMIT: u32 = 60;
const BURST: u32 = 30;
const SLOTS: u32 = 10;
const UNITS: u32 = 22;

/// A machine that stood still for so long, in all the units, may have wasted a part of them.
const WASTING: Duration = Duration::from_millis(500);

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

/// What was sent to the keys of one way of spreading, and what became of it.
struct Spread<'h> {
    shares: [u32; GATEWAYS],
    hits: &'h [Vec<Hit>; 4],
    /// Gateways that were alone at any time: on a busy machine Redis may not answer them in time.
    alone: &'h [Alone],
    /// How late answers of Redis came, in microseconds.
    late: u64,
}

impl Spread<'_> {
    /// What the limit lets through, and a part of it for each gateway that was alone.
    fn with_parts(&self, all: impl Fn(u64) -> u64) -> impl Fn(u64) -> u64 {
        let alone = u64::from(alone_within(self.alone, &(0..u64::MAX)));
        move |span| {
            let part = all(span).div_ceil(GATEWAYS as u64) + 1;
            all(span).saturating_add(alone.saturating_mul(part))
        }
    }

    #[track_caller]
    fn assert_bounds(&self) {
        let [window, sliding, bucket, line] = self.hits;
        bound::in_windows(&admitted(window), SECOND, 0, |time| {
            LIMIT + LIMIT.div_ceil(GATEWAYS as u32) * alone_within(self.alone, &time)
        });
        bound::in_any_interval(&admitted(sliding), self.with_parts(in_a_sliding_window));
        bound::in_any_interval(&admitted(bucket), self.with_parts(in_a_bucket));
        // Slots are an interval apart, on the clock of Redis, whose answer may come late; a request
        // leaves at most 2 ms after that.
        let interval = SECOND / u64::from(SLOTS);
        let in_line = |span| (span + 2_000 + self.late) / interval + 1;
        bound::in_any_interval(&admitted(line), self.with_parts(in_line));
    }

    /// How many per cent were used, of that algorithm for which it was least.
    fn least_used(&self) -> f64 {
        let [window, sliding, bucket, line] = self.hits;
        let interval = SECOND / u64::from(LIMIT);
        println!("LB {:?}: admitted {} of {}", self.shares, admitted(line).len(), line.len());
        [
            ("W", window, expected::fixed_window(&shots(window), LIMIT, SECOND)),
            ("SW", sliding, expected::sliding_window(&shots(sliding), LIMIT, SECOND + SECOND / 10)),
            ("TB", bucket, expected::token_bucket(&shots(bucket), BURST.into(), interval)),
        ]
        .map(|(what, hits, expected)| used(&format!("{what} {:?}", self.shares), hits, expected))
        .into_iter()
        .fold(100.0, f64::min)
    }
}

/// Fires all loads at once: for each way of spreading, what became of them.
fn fire(fleet: &Fleet) -> Vec<[Vec<Hit>; 4]> {
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
    thread::scope(|scope| {
        let (load, limit) = (&load, 2 * LIMIT);
        let start = |spread| {
            let rates =
                [("window", limit), ("sliding", limit), ("bucket", limit), ("line", 2 * SLOTS)];
            rates.map(|(path, rate)| scope.spawn(move || load(path, spread, rate)))
        };
        let loads = [0, 1].map(start);
        loads.into_iter().map(|loads| loads.map(|load| load.join().unwrap())).collect()
    })
}

/// With a timeout that hardly any other work of the machine exceeds: otherwise gateways would count
/// alone for a while, of which other tests tell.
#[test]
fn never_above_the_limit_and_hardly_below() {
    alone();
    try_until_undisturbed("totals", || {
        let fleet = Fleet::start_at_redis(TIMEOUT, &rules());
        fleet.comes_together("/line/0");
        let (modes, clock) = (Modes::watch(&fleet.envoys), Clock::new());
        let began = clock.now();
        let hits = fire(&fleet);
        let fired = began..clock.now();
        let late = fleet.waits().iter().map(Histogram::most).fold(0.0, f64::max) as u64;
        fleet.comes_together("/line/0");
        let alone = modes.end();
        fleet.assert_unharmed();
        let mut complaints = without_cause(&alone, TIMEOUT);
        for (shares, hits) in SHARES.into_iter().zip(&hits) {
            hits.iter().for_each(|hits| assert_none_failed(hits));
            let spread = Spread { shares, hits, alone: &alone, late };
            spread.assert_bounds();
            let least = spread.least_used();
            if least < 95.0 {
                let what = format!("only {least:.1} % were used with {shares:?}");
                complaints.push(Complaint::new(what, fired.clone(), WASTING));
            }
        }
        ((), complaints)
    });
}
