//! When held requests reach the upstream.

use std::ops::Range;
use std::thread;

use super::changed_line;
use crate::harness::{Load, NO_EXCUSE, Shot, Upstream, alone, stood_still, watch_machine};

const SECOND: u64 = 1_000_000;
const RPU: u32 = 200;
const INTERVAL: u64 = SECOND / RPU as u64;
const SECONDS: u32 = 4;

/// Connections on which nobody is held, and µs from one request of each to the next.
const FREE: u32 = 16;
const PAUSE: usize = 20_000;

/// What a request that nobody holds may take in µs, on loopback and waiting for a processor.
const ON_ITS_WAY: u64 = 3_000;

/// A slot is at most 2 ms late.
const MOST_LATE: u64 = 2_000 + ON_ITS_WAY;

/// What a load showed.
#[derive(Debug)]
struct Attempt {
    /// µs from a departure to the next one.
    gap: u64,
    /// The share of the held requests that came too late.
    late: f64,
    /// The share of those that came too late at a time at which nothing else did.
    late_alone: f64,
    /// The share of those that took too long although nobody held them.
    late_anyhow: f64,
}

impl Attempt {
    /// Fires a load at a line that is never empty. Beside it, through the same workers, go requests
    /// that nobody holds: they tell what the machine does to both.
    fn make() -> Attempt {
        let upstream = Upstream::start();
        let envoy = changed_line("gateway", RPU, "except: {paths: [/free]}")
            .workers(2)
            .before(&upstream)
            .precise_timers()
            .start();
        let load = |connections, rate, paths| {
            let shots = Load { connections, rate, seconds: SECONDS, paths }.fire(envoy.port);
            assert!(shots.iter().all(|shot| shot.status == 200));
            shots
        };
        let (held, free) = thread::scope(|scope| {
            let free = scope.spawn(|| load(FREE, FREE * 1_000_000 / PAUSE as u32, &["/free"]));
            (load(100, 100 * RPU, &["/held"]), free.join().unwrap())
        });
        envoy.assert_unharmed();
        let begin = held.iter().map(|shot| shot.sent).min().unwrap();
        let arrivals = upstream.arrivals();
        let arrivals = arrivals.iter().filter(|arrival| arrival.path == "/held");
        let mut departures: Vec<u64> = arrivals.map(|arrival| arrival.at).collect();
        assert_none_early(begin, &departures);
        // At the beginning connections are opened, and at the end nothing goes beside the line.
        let middle = begin + SECOND / 2..begin + u64::from(SECONDS) * SECOND - SECOND / 2;
        departures.retain(|at| middle.contains(at));
        let free: Vec<Shot> = free.into_iter().filter(|shot| middle.contains(&shot.due)).collect();
        Attempt::of(&departures, &free)
    }

    fn of(departures: &[u64], free: &[Shot]) -> Attempt {
        let late: Vec<Range<u64>> =
            lateness(departures).filter(|time| length(time) > MOST_LATE).collect();
        let alone = late.iter().filter(|time| !is_disturbed(time, free)).count();
        let anyhow: Vec<u64> = free.iter().flat_map(waits).collect();
        let share = |count: usize| count as f64 / departures.len() as f64;
        let attempt = Attempt {
            gap: gap(departures),
            late: share(late.len()),
            late_alone: share(alone),
            late_anyhow: share_above(ON_ITS_WAY, &anyhow),
        };
        println!("{} held: {attempt:?}", departures.len());
        attempt
    }

    fn has_right_gap(&self) -> bool {
        self.gap.abs_diff(INTERVAL) * 50 <= INTERVAL
    }

    /// Of those that came while the machine let everything come in time, none was late; and that was
    /// most of the time.
    fn is_right(&self) -> bool {
        self.has_right_gap() && self.late_alone == 0.0 && self.late < 0.5
    }

    /// Whether the machine is no excuse.
    fn is_wrong(&self) -> bool {
        self.late > 2.0 * self.late_anyhow || !self.has_right_gap() && self.late_anyhow < 0.5
    }
}

/// Whatever the machine does, none may come before its slot.
#[track_caller]
fn assert_none_early(begin: u64, departures: &[u64]) {
    for (number, at) in (0..).zip(departures) {
        assert!(at - begin >= number * INTERVAL, "{number} after {} µs; {NO_EXCUSE}", at - begin);
    }
}

/// For each, the latest slot that it can have had, and when it came. Its slot lay an interval before the
/// next one's, and that not after the next one. With the longest of these times, at most
/// `(t + longest) · rpu / unit + 1` came in any t.
fn lateness(departures: &[u64]) -> impl Iterator<Item = Range<u64>> {
    let mut slot = u64::MAX;
    let late = move |at: &u64| {
        slot = (slot - INTERVAL).min(*at);
        slot..*at
    };
    departures.iter().rev().map(late)
}

/// Whether the machine was slow at that time: for a request that nobody held, or for all.
fn is_disturbed(time: &Range<u64>, free: &[Shot]) -> bool {
    let meanwhile = |shot: &&Shot| shot.due < time.end && time.start < shot.received;
    free.iter().filter(meanwhile).any(|shot| shot.received - shot.due > ON_ITS_WAY)
        || stood_still(time).as_micros() as u64 > ON_ITS_WAY
}

/// From one departure to the next in half of the time, whatever happened in the other half.
fn gap(departures: &[u64]) -> u64 {
    const SLOTS: usize = 40;
    let pairs = departures.iter().zip(&departures[SLOTS..]);
    let mut spans: Vec<u64> = pairs.map(|(from, to)| to - from).collect();
    spans.sort_unstable();
    spans[spans.len() / 2] / SLOTS as u64
}

fn length(time: &Range<u64>) -> u64 {
    time.end - time.start
}

/// How long a request took, and those that its connection did not send meanwhile.
fn waits(shot: &Shot) -> impl Iterator<Item = u64> + use<> {
    (0..=shot.received - shot.due).rev().step_by(PAUSE)
}

fn share_above(most: u64, times: &[u64]) -> f64 {
    times.iter().filter(|time| **time > most).count() as f64 / times.len() as f64
}

#[test]
fn an_interval_apart() {
    alone();
    watch_machine();
    let mut wrong = 0;
    for _ in 0..5 {
        let attempt = Attempt::make();
        if attempt.is_right() {
            return;
        }
        // A machine may hit only those that were held, but not each time.
        wrong += u32::from(attempt.is_wrong());
        assert!(wrong < 3, "late, and the machine was quiet; {NO_EXCUSE}");
    }
    panic!("the machine was too busy to tell; {NO_EXCUSE}");
}
