//! One fault of Redis under load. Prints the time to recover and the longest wait. Asserts only
//! properties that hold for any delay.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Fleet, GATEWAYS, assert_none_failed};
use crate::harness::{Hit, OpenLoad, Redis, eventually, request};

/// Requests per second of all callers together.
const LIMIT: usize = 30;

/// Requests per second to all gateways, a third of each kind.
const RATE: u32 = 300;

/// The gateway's timeout for Redis.
pub const TIMEOUT: Duration = Duration::from_millis(250);

/// The duration of a fault.
const LASTING: Duration = Duration::from_millis(2_400);

const SECOND: u64 = 1_000_000;

/// Maximum difference of the clocks of Envoy and of this process, in microseconds.
const CLOCK_ERROR: u64 = 5_000;

/// A rule for all callers together, a rule for each caller, and a path without rules.
pub const RULES: &str = "
except: {paths: [/free]}
limits:
  - {Url: /hot, rules: [{name: hot, actor: all, unit: second, rpu: 30, algo: W, scope: global}]}
  - {Url: /each, rules: [{name: each, actor: account, unit: minute, rpu: 100, algo: SW, scope: global}]}
";

pub struct Fault<'f, R = Redis> {
    pub name: &'static str,
    /// The number of times that Redis loses its data. Each of them may admit one further limit.
    pub losses: usize,
    pub begin: &'f dyn Fn(&mut Fleet<R>),
    pub end: &'f dyn Fn(&mut Fleet<R>),
    /// The name under which the first gateway counts the failure.
    pub failure: Option<&'static str>,
}

/// The rule of a request, by its position in the load. Each gateway receives all kinds in turn.
#[derive(PartialEq, Eq)]
enum Kind {
    Hot,
    Each,
    Free,
}

fn kind(number: usize) -> Kind {
    match number / GATEWAYS % 3 {
        0 => Kind::Hot,
        1 => Kind::Each,
        _ => Kind::Free,
    }
}

/// Each request to `/each` has another caller, also in later loads.
fn requests() -> Vec<Vec<u8>> {
    static LOADS: AtomicU32 = AtomicU32::new(0);
    let load = LOADS.fetch_add(1, Ordering::Relaxed);
    let request = |number: usize| match kind(number) {
        Kind::Hot => request("GET", "/hot", &[]),
        Kind::Each => request("GET", "/each", &[("x-account-id", &format!("{load}-{number}"))]),
        Kind::Free => request("GET", "/free", &[]),
    };
    (0..9 * 200).map(request).collect()
}

/// Causes a fault under load and prints a row of the table.
#[track_caller]
pub fn measure<R>(fleet: &mut Fleet<R>, fault: &Fault<'_, R>) {
    let load = OpenLoad {
        gateways: &fleet.ports(),
        rate: RATE,
        lasting: Duration::from_secs(60),
        connections: 60,
        requests: &requests(),
    };
    let (hits, recovery) = load.fire_during(|| cause(fleet, fault));
    assert_none_failed(&hits);
    let each = hits.iter().filter(|hit| kind(hit.request) == Kind::Each);
    assert!(each.into_iter().all(|hit| hit.status == 200), "{}: a new caller", fault.name);
    let hot = hits.iter().filter(|hit| kind(hit.request) == Kind::Hot);
    let most = assert_bound(hot.filter(|hit| hit.status == 200).collect(), fault.losses * LIMIT);
    let wait = hits.iter().map(Hit::wait).max().unwrap_or_default();
    println!(
        "| {} | {} | 0 | {} ms | {most} of {} | {:.1} s |",
        fault.name,
        hits.len(),
        wait.as_millis(),
        (2 + fault.losses) * LIMIT,
        recovery.as_secs_f64(),
    );
}

/// The head of the table.
pub fn print_head() {
    println!(
        "| fault | requests | failed | longest wait | most in a second, of what is promised | together again after |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
}

/// Returns the time from the end of the fault until the fleet counts together.
#[track_caller]
fn cause<R>(fleet: &mut Fleet<R>, fault: &Fault<'_, R>) -> Duration {
    let counted = |fleet: &Fleet<R>, failure| {
        fleet.envoys[0].sum(&format!("wasmcustom.diana.shop.fleet.failed.{failure}"))
    };
    let before = fault.failure.map(|failure| counted(fleet, failure));
    thread::sleep(Duration::from_millis(300));
    (fault.begin)(fleet);
    thread::sleep(LASTING);
    if let Some((failure, before)) = fault.failure.zip(before) {
        eventually(failure, || (counted(fleet, failure) > before).then_some(()));
    }
    (fault.end)(fleet);
    let ended = Instant::now();
    fleet.wait_until_together();
    ended.elapsed()
}

/// Fails if a window admits more than the limit and the shares of gateways in degraded mode, which
/// are as much again in total. `spare` permits may be exceeded once. Returns the count of the
/// fullest window.
///
/// A request is counted at an instant between its sending and its response. Only requests within a
/// window count here, so a delay can only make the check weaker.
#[track_caller]
fn assert_bound(admitted: Vec<&Hit>, mut spare: usize) -> usize {
    let windows: Vec<u64> = admitted
        .iter()
        .filter(|hit| (hit.sent - CLOCK_ERROR) / SECOND == (hit.received + CLOCK_ERROR) / SECOND)
        .map(|hit| hit.sent / SECOND)
        .collect();
    let (first, last) = (windows.iter().min().copied(), windows.iter().max().copied());
    let counts = first.zip(last).into_iter().flat_map(|(first, last)| first..=last);
    let counts: Vec<usize> =
        counts.map(|window| windows.iter().filter(|found| **found == window).count()).collect();
    for count in &counts {
        let above = count.saturating_sub(2 * LIMIT);
        assert!(above <= spare, "{count} in a window, more than {} and {spare}", 2 * LIMIT);
        spare -= above;
    }
    counts.into_iter().max().unwrap_or(0)
}
