//! When the machine stood still: threads that do nothing but nap, on each processor, note how much too late they wake, and
//! Linux says how long threads of Envoy and Redis waited for a processor, and whether they wait for a disk.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use super::clock::Clock;

/// Threads that nap, on so many processors at most.
const NAPPERS: usize = 8;

const NAP: Duration = Duration::from_millis(4);

/// Shorter delays, in microseconds, are what threads have on any machine.
const NOTED: u64 = 1_000;

/// Who could not go on, by a number, and when, in microseconds of Unix time.
struct Stall {
    who: usize,
    during: Range<u64>,
}

/// A thread that is watched.
struct Watched {
    who: usize,
    /// What Linux tells of it.
    folder: PathBuf,
    /// Microseconds that it has waited since its start.
    waited: u64,
}

static STALLS: Mutex<Vec<Stall>> = Mutex::new(Vec::new());
static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to watch, for as long as this process runs.
pub fn watch_machine() {
    static WATCHING: OnceLock<()> = OnceLock::new();
    WATCHING.get_or_init(|| {
        for who in 0..NAPPERS {
            thread::spawn(move || nap(who));
        }
        thread::spawn(look);
    });
}

/// Watches those threads of a process, too, whose names begin so.
pub fn watch_process(process: u32, names: &str) {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    for task in tasks.map(|task| task.path()) {
        let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
        if let Some(waited) = waited(&task).filter(|_| name.starts_with(names)) {
            let mut watched = lock(&WATCHED);
            let who = watched.iter().map(|watched| watched.who + 1).max().unwrap_or(NAPPERS);
            watched.push(Watched { who, folder: task, waited });
        }
    }
}

/// Has a thread nap on a processor of its own, where there are as many: only one of them may be taken away, and Linux
/// lets all of them nap on another one for a seventh of the time.
#[cfg(target_os = "linux")]
fn stay(who: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(all) = sched_getaffinity(None) else { return };
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|at| all.is_set(*at)).collect();
    let mut own = CpuSet::new();
    processors.get(who % processors.len().max(1)).into_iter().for_each(|at| own.set(*at));
    // Where it is not allowed they nap where they may.
    _ = sched_setaffinity(None, &own);
}

#[cfg(not(target_os = "linux"))]
fn stay(_who: usize) {}

fn nap(who: usize) {
    stay(who);
    let (clock, nap) = (Clock::new(), NAP.as_micros() as u64);
    loop {
        let due = clock.now() + nap;
        thread::sleep(NAP);
        note(who, due..clock.now());
    }
}

/// Asks again and again how long the watched threads have waited. Those that are gone are forgotten.
fn look() {
    let clock = Clock::new();
    let mut last = clock.now();
    loop {
        thread::sleep(NAP);
        let looked = clock.now();
        lock(&WATCHED).retain_mut(|watched| {
            let Some(waited) = waited(&watched.folder) else { return false };
            // A line of the log can take as long as the disk does, and no processor is waited for meanwhile.
            if waits_for_disk(&watched.folder) {
                note(watched.who, last..looked);
            }
            let micros = waited - watched.waited.min(waited);
            watched.waited = waited;
            // It is counted when the thread goes on.
            let now = clock.now();
            note(watched.who, now - micros..now);
            true
        });
        last = looked;
    }
}

fn note(who: usize, during: Range<u64>) {
    if during.end.saturating_sub(during.start) >= NOTED {
        lock(&STALLS).push(Stall { who, during });
    }
}

/// How long a thread has waited for a processor since its start, in microseconds.
fn waited(thread: &Path) -> Option<u64> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
    Some(text.split(' ').nth(1)?.parse::<u64>().ok()? / 1_000)
}

/// Whether a thread is in the state of those that wait for a disk.
fn waits_for_disk(thread: &Path) -> bool {
    let text = fs::read_to_string(thread.join("stat")).unwrap_or_default();
    // Its name comes before, and may contain anything.
    text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('D'))
}

/// How long the machine stood still within a time, for the thread that was kept longest.
pub fn stood_still(within: &Range<u64>) -> Duration {
    let mut sums: HashMap<usize, u64> = HashMap::new();
    for stall in lock(&STALLS).iter() {
        let (start, end) = (stall.during.start, stall.during.end);
        *sums.entry(stall.who).or_default() +=
            end.min(within.end).saturating_sub(start.max(within.start));
    }
    Duration::from_micros(sums.into_values().max().unwrap_or(0))
}
