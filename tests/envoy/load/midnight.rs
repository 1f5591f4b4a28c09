//! Midnights under load. A rule counts in each worker by itself, so every connection has accounts of
//! its own, and an oracle that knows exactly what has to become of each of its requests.
//!
//! `make midnight` runs ten of them.

mod caller;
mod oracle;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use caller::{Caller, Event};
use oracle::Oracle;

use crate::harness::{Clock, Envoy, Gateway, alone, eventually};

const WORKERS: u32 = 4;
/// More if a worker has none.
const CONNECTIONS: u32 = 16;
/// Requests per second, of all connections together.
const RATE: u32 = 20_000;

const PERMITS: u8 = 3;
const SECOND: u64 = 1_000_000;
const DAY: u64 = 86_400 * SECOND;

/// How long before midnight the clock is set, at which workers look once a second, and how long a
/// round goes on after it.
const BEFORE: u64 = 2 * SECOND;
const AFTER: u64 = 2 * SECOND;

/// A midnight, in microseconds of our time, when its round was over, and the memory of Envoy then.
struct Round {
    midnight: u64,
    over: u64,
    memory: u64,
}

#[test]
fn each_day_gives_what_the_oracle_says_and_memory_does_not_grow() {
    alone();
    let midnights = std::env::var("MIDNIGHTS").map_or(2, |text| text.parse().expect("a number"));
    let clock = Clock::new();
    let tomorrow = clock.now() / DAY + 2;
    // In the middle of the day before it, so that no other midnight is passed on the way there.
    let ahead = (midnight_of(tomorrow) - DAY / 2 - clock.now()) / SECOND;
    let envoy = Gateway::with(&format!(
        "{{limits: [{{Url: /, rules: [{{name: posts, actor: account, unit: day, rpu: {PERMITS}, algo: W,
           scope: local, quota: {{accounts: 1000000, error: 0.0001}}}}]}}], time_zone: '+08:00'}}"
    ))
    .workers(WORKERS)
    .clock_ahead(ahead.cast_signed())
    .without_access_log()
    .start();
    let mut callers: Vec<Caller> = (0..CONNECTIONS).map(|_| Caller::connect(envoy.port)).collect();
    let has_callers = |worker| {
        let name = format!("listener.127.0.0.1_0.worker_{worker}.downstream_cx_active");
        envoy.stat(&name).is_some_and(|count| count > 0)
    };
    eventually("each worker to have callers", || {
        callers.push(Caller::connect(envoy.port));
        (0..WORKERS).all(has_callers).then_some(())
    });
    let over = AtomicBool::new(false);
    let rate = RATE / callers.len() as u32;
    let (rounds, logs) = thread::scope(|scope| {
        let call = |caller: Caller| caller.call(rate, &clock, &over);
        let calls: Vec<_> =
            callers.into_iter().map(|caller| scope.spawn(move || call(caller))).collect();
        let days = tomorrow..tomorrow + midnights;
        let rounds: Vec<Round> = days.map(|day| pass_midnight(&envoy, &clock, day)).collect();
        over.store(true, Ordering::Relaxed);
        (rounds, calls.into_iter().map(|call| call.join().unwrap()).collect::<Vec<_>>())
    });
    judge(&rounds, &logs);
    envoy.assert_unharmed();
}

/// When a day begins at +08:00.
fn midnight_of(day: u64) -> u64 {
    day * DAY - DAY / 3
}

/// Sets the clock to shortly before a day begins, and waits until it has.
fn pass_midnight(envoy: &Envoy, clock: &Clock, day: u64) -> Round {
    let midnight = clock.now() + BEFORE;
    envoy.set_clock_ahead((midnight_of(day) - midnight).cast_signed());
    let wait = (midnight + AFTER).saturating_sub(clock.now());
    thread::sleep(Duration::from_micros(wait));
    Round { midnight, over: clock.now(), memory: envoy.memory_now() }
}

fn judge(rounds: &[Round], logs: &[Vec<Event>]) {
    let mut oracles: Vec<Oracle> = logs.iter().map(|_| Oracle::default()).collect();
    let mut begins = vec![0; logs.len()];
    let mut since =
        logs.iter().filter_map(|log| log.first()).map(|first| first.sent).min().unwrap();
    println!("midnight | requests/s | admitted before it | after it | memory in MiB");
    for (number, round) in rounds.iter().enumerate() {
        let (mut requests, mut before, mut after) = (0, 0, 0);
        for ((oracle, log), begin) in oracles.iter_mut().zip(logs).zip(&mut begins) {
            let end = log.partition_point(|event| event.sent < round.over);
            let (yesterday, today) = oracle.follow(&log[*begin..end], round.midnight);
            (before, after, requests) =
                (before + yesterday, after + today, requests + end - *begin);
            *begin = end;
        }
        let rate = requests as u64 * SECOND / (round.over - since);
        println!("{} | {rate} | {before} | {after} | {}", number + 1, round.memory >> 10);
        assert!(before > 1_000 && after > 1_000, "the load was too small to tell anything");
        since = round.over;
    }
    let (first, last) = (rounds[0].memory, rounds[rounds.len() - 1].memory);
    // Another section in each worker would take 24 MiB more; Envoy itself takes some MiB more or less.
    assert!(last < first + (12 << 10), "memory grew from {first} to {last} KiB");
}
