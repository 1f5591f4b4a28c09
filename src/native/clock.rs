//! The clocks, and the thread that runs the timers of all workers.

#![allow(clippy::disallowed_methods, reason = "the adapter reads the clocks")]

use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use diana_policy::time::{Micros, SECOND};

use crate::abi::{LogLevel, has_runtime, log};
use crate::{config, faults, slot, switches};

/// The monotonic clock when it is first read. Instants before it must not be negative.
const BEGIN: Micros = 3600 * SECOND;

/// The time until which the thread sleeps. Zero while it is awake.
static SLEEPS_UNTIL: AtomicU64 = AtomicU64::new(0);

static THREAD: OnceLock<Option<Thread>> = OnceLock::new();

/// The monotonic clock.
pub(crate) fn monotonic() -> Micros {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    BEGIN + micros(ORIGIN.get_or_init(Instant::now).elapsed())
}

/// The wall clock since the Unix epoch.
pub(crate) fn wall() -> Micros {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros)
}

fn micros(duration: Duration) -> Micros {
    duration.as_secs().saturating_mul(SECOND) + Micros::from(duration.subsec_micros())
}

/// Starts the thread, unless it runs.
pub(crate) fn start() {
    THREAD.get_or_init(|| match thread::Builder::new().name("diana".into()).spawn(run) {
        Ok(handle) => Some(handle.thread().clone()),
        Err(why) => {
            log(
                LogLevel::Error,
                &format!("no thread for timers, so held requests wait for ever: {why}"),
            );
            None
        }
    });
}

/// Wakes the thread if it sleeps for longer than that.
pub(crate) fn notify(due: Micros) {
    if due < SLEEPS_UNTIL.load(Ordering::SeqCst)
        && let Some(Some(thread)) = THREAD.get()
    {
        thread.unpark();
    }
}

fn run() {
    let mut looks_at = if has_runtime() { monotonic() } else { Micros::MAX };
    loop {
        let now = monotonic();
        if looks_at <= now {
            config::schedule_look();
            looks_at = now.saturating_add(switches::PERIOD);
        }
        let due_of_slots = next_due();
        if due_of_slots <= now {
            fire();
            continue;
        }
        let due = due_of_slots.min(looks_at);
        SLEEPS_UNTIL.store(due, Ordering::SeqCst);
        // A timer that was set in between has seen the thread awake.
        if next_due() == due_of_slots {
            thread::park_timeout(Duration::from_micros(due.saturating_sub(monotonic())));
        }
        SLEEPS_UNTIL.store(0, Ordering::SeqCst);
    }
}

fn next_due() -> Micros {
    slot::all().iter().map(slot::Slot::due).min().unwrap_or(Micros::MAX)
}

fn fire() {
    for slot in slot::all().iter().filter(|slot| slot.due() <= monotonic()) {
        let fired = catch_unwind(|| {
            #[cfg(feature = "faults")]
            faults::injected::begin("timer");
            slot.fire();
        });
        if fired.is_err() {
            _ = catch_unwind(|| faults::recover("timer"));
        }
    }
}
