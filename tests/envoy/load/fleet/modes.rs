//! When each gateway counted alone, by its own log and metric.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{SECOND, counts_with_others};
use crate::harness::{Clock, Complaint, Envoy, eventually, stood_still};

/// Between two looks at the metrics.
const PAUSE: Duration = Duration::from_millis(25);

/// So much later, in microseconds, may a change be logged than other workers go by it, by a worker that
/// is not kept from it.
const LOGGED_LATER: u64 = 20_000;

/// So long, in microseconds, may it take until all workers of a gateway went by a change and said so
/// in the metric: twice the time from one flush to the next, and some more.
const TOLD_LATER: u64 = 250_000;

/// So much later, in microseconds, may a gateway notice the end of what it waited for, and log it.
pub const NOTICED_LATER: u64 = 50_000;

/// A time for which a gateway counted alone, in microseconds of Unix time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alone {
    pub gateway: usize,
    /// When its log says so.
    pub logged: u64,
    /// From when any worker of it may have gone by it, until the last one had ended it.
    pub during: Range<u64>,
    /// Until when all of its workers did.
    pub surely_until: u64,
    /// What its log says.
    pub reason: String,
}

impl Alone {
    /// Whether what was judged within a time may have been judged by the gateway alone.
    pub fn touches(&self, time: &Range<u64>) -> bool {
        self.during.start < time.end && time.start < self.during.end
    }
}

/// How many gateways counted alone at some instant within a time.
pub fn alone_within(alone: &[Alone], time: &Range<u64>) -> u32 {
    let mut gateways: Vec<usize> =
        alone.iter().filter(|alone| alone.touches(time)).map(|alone| alone.gateway).collect();
    gateways.sort_unstable();
    gateways.dedup();
    gateways.len() as u32
}

/// That gateways counted alone although nothing is wrong with a Redis whose answers they wait for so
/// many microseconds.
pub fn without_cause<'a>(
    alone: impl IntoIterator<Item = &'a Alone>,
    timeout: u64,
) -> Vec<Complaint> {
    let complaint = |alone: &Alone| {
        let what = format!("gateway {} went alone: {}", alone.gateway, alone.reason);
        let during = alone.logged - timeout - NOTICED_LATER..alone.logged;
        Complaint::new(what, during, delaying(timeout))
    };
    alone.into_iter().map(complaint).collect()
}

/// A machine that stood still for so long may have kept a call from being answered in that time: it
/// goes through several processes.
pub fn delaying(timeout: u64) -> Duration {
    Duration::from_micros(timeout / 4)
}

/// Watches the gateways of a fleet, which has to count together at the beginning and at the end.
pub struct Modes {
    envoys: Arc<Vec<Envoy>>,
    began: u64,
    over: Arc<AtomicBool>,
    watcher: Option<JoinHandle<Looks>>,
}

/// For each gateway, when looks began that found all of its workers counting with the others.
type Looks = Vec<Vec<u64>>;

impl Modes {
    pub fn watch(envoys: &Arc<Vec<Envoy>>) -> Modes {
        let (clock, over) = (Clock::new(), Arc::new(AtomicBool::new(false)));
        let watcher = {
            let (envoys, over) = (Arc::clone(envoys), Arc::clone(&over));
            thread::spawn(move || look_until(&over, &envoys, clock))
        };
        Modes { envoys: Arc::clone(envoys), began: clock.now(), over, watcher: Some(watcher) }
    }

    /// When each gateway was alone meanwhile.
    #[track_caller]
    pub fn end(mut self) -> Vec<Alone> {
        let changes: Vec<Vec<Change>> =
            self.envoys.iter().map(|envoy| settled_changes(envoy, self.began)).collect();
        self.over.store(true, Ordering::Relaxed);
        let looks = self.watcher.take().unwrap().join().unwrap();
        let periods = changes.iter().zip(&looks).map(|(changes, looks)| periods(changes, looks));
        let alone = |(gateway, periods): (usize, Vec<Period>)| {
            periods.into_iter().map(move |Period { logged, back, end, reason }| Alone {
                gateway,
                logged,
                during: earliest(logged)..end,
                surely_until: if back == u64::MAX { back } else { earliest(back) },
                reason,
            })
        };
        periods.enumerate().flat_map(alone).collect()
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            // Else the gateways would outlive a test that failed.
            let _ = watcher.join();
        }
    }
}

fn look_until(over: &AtomicBool, envoys: &[Envoy], clock: Clock) -> Looks {
    let mut looks = vec![Vec::new(); envoys.len()];
    while !over.load(Ordering::Relaxed) {
        for (envoy, looks) in envoys.iter().zip(&mut looks) {
            let at = clock.now();
            if counts_with_others(envoy) {
                looks.push(at);
            }
        }
        thread::sleep(PAUSE);
    }
    looks
}

/// A line of the log.
#[derive(Debug)]
struct Change {
    at: u64,
    /// Why it counts alone, unless it counts with the others again.
    alone: Option<String>,
}

/// What the log says since then, once it says that the gateway counts with the others.
#[track_caller]
fn settled_changes(envoy: &Envoy, since: u64) -> Vec<Change> {
    let clock = Clock::new();
    eventually("the log to tell what the metrics do", || {
        let changes = those_since(changes(&envoy.log()), since);
        let last = changes.last();
        let over = last.is_none_or(|last| {
            last.alone.is_none() && last.at + TOLD_LATER + SECOND / 4 < clock.now()
        });
        (over && counts_with_others(envoy)).then_some(changes)
    })
}

/// The changes from an instant on, and those by which the gateway still counted alone then: it may have gone alone after it
/// was seen to count with the others.
fn those_since(mut changes: Vec<Change>, since: u64) -> Vec<Change> {
    let is_over = |change: &Change| change.alone.is_none() && change.at + TOLD_LATER < since;
    let over = changes.iter().rposition(is_over);
    changes.drain(..over.map_or(0, |over| over + 1));
    changes
}

fn changes(log: &str) -> Vec<Change> {
    log.lines().filter_map(change).collect()
}

fn change(line: &str) -> Option<Change> {
    let alone = match line.split_once("cannot be relied upon: ") {
        Some((_, reason)) => Some(reason.split(';').next().unwrap_or_default().to_owned()),
        None => line.contains("is back; the fleet counts together").then_some(None)?,
    };
    let (seconds, rest) = line.strip_prefix('[')?.split_once('.')?;
    let at = seconds.parse::<u64>().ok()? * SECOND + rest.split_once(']')?.0.parse::<u64>().ok()?;
    Some(Change { at, alone })
}

/// When what was logged then may have begun.
fn earliest(logged: u64) -> u64 {
    let kept = stood_still(&(logged - TOLD_LATER..logged));
    logged - LOGGED_LATER - kept.as_micros() as u64
}

/// A time for which a gateway counted alone: what its log says, and the end that was seen.
#[derive(Debug, PartialEq, Eq)]
struct Period {
    logged: u64,
    back: u64,
    end: u64,
    reason: String,
}

fn periods(changes: &[Change], looks: &[u64]) -> Vec<Period> {
    let mut periods = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let Some(reason) = &change.alone else { continue };
        let back = changes[number..].iter().find(|change| change.alone.is_none());
        let back = back.map_or(u64::MAX, |back| back.at);
        let told = back.saturating_add(TOLD_LATER);
        let end = looks.iter().copied().find(|look| *look >= told).unwrap_or(u64::MAX);
        periods.push(Period { logged: change.at, back, end, reason: reason.clone() });
    }
    periods
}

#[test]
fn a_gateway_is_alone_until_all_its_workers_are_seen_to_be_together() {
    let log = "[1700000000.000100][7][warning] x: Redis (cluster `r`) cannot be relied upon: no answer; y\n\
               [1700000001.000000][7][info] other\n\
               [1700000002.500000][7][warning] x: Redis (cluster `r`) is back; the fleet counts together\n";
    let second = |at| 1_700_000_000 * SECOND + at;
    let looks = [second(0), second(2_600_000), second(2_900_000), second(3_000_000)];
    let found = periods(&changes(log), &looks);
    let (logged, back, end) = (second(100), second(2_500_000), second(2_900_000));
    assert_eq!(found, [Period { logged, back, end, reason: "no answer".to_owned() }]);
}

/// Also where it went alone just before the watch began, or was back so lately that not all its workers may know it.
#[test]
fn what_lasts_when_a_watch_begins_belongs_to_it() {
    let change = |at: u64, alone: bool| Change { at: at * SECOND, alone: alone.then(String::new) };
    let log =
        || [(1, true), (2, false), (10, true), (11, false)].map(|(at, alone)| change(at, alone));
    for (since, first) in [(0, 1), (1, 1), (2, 1), (9, 10), (10, 10), (11, 10)] {
        let found = those_since(log().into(), since * SECOND);
        assert_eq!(found.first().map(|change| change.at / SECOND), Some(first), "since {since}");
    }
    assert!(those_since(log().into(), 12 * SECOND).is_empty());
}
