//! The clocks, and the sleep of the thread that runs timers.

#![allow(clippy::disallowed_methods, reason = "the adapter reads the clocks")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use diana_policy::time::{Micros, SECOND};

use crate::abi::{LogLevel, log};

/// The monotonic clock when it is first read. Instants before it must not be negative.
const BEGIN: Micros = 3600 * SECOND;

/// The time until which the thread sleeps. Zero while it is awake.
static SLEEPS_UNTIL: AtomicU64 = AtomicU64::new(0);

static THREAD: OnceLock<Option<Thread>> = OnceLock::new();

/// The monotonic clock.
pub(crate) fn monotonic() -> Micros {
    #[cfg(feature = "explored")]
    if let Some(now) = crate::explored::clock() {
        return now;
    }
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
pub(crate) fn start(run: fn()) {
    #[cfg(feature = "explored")]
    if crate::explored::clock().is_some() {
        return;
    }
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

/// The thread sleeps until an instant, unless `is_stale`: a timer that was set in between has seen it awake.
pub(crate) fn sleep(until: Micros, is_stale: impl FnOnce() -> bool) {
    SLEEPS_UNTIL.store(until, Ordering::SeqCst);
    if !is_stale() {
        thread::park_timeout(Duration::from_micros(until.saturating_sub(monotonic())));
    }
    SLEEPS_UNTIL.store(0, Ordering::SeqCst);
}
