//! The clocks, and the sleep of the thread that runs timers.

#![allow(clippy::disallowed_methods, reason = "the adapter reads the clocks")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use diana_policy::time::{Micros, SECOND};

use crate::abi::{LogLevel, log};

/// The monotonic clock when the module is loaded. Instants before it must not be negative.
const BEGIN: Micros = 3600 * SECOND;

/// The clock of the module, and its thread for timers.
pub(crate) struct ModuleClock {
    /// When the module was loaded.
    origin: Instant,
    /// The time until which the thread sleeps. Zero while it is awake.
    sleeps_until: AtomicU64,
    thread: OnceLock<Option<Thread>>,
    /// The time of a test that has the clock.
    #[cfg(feature = "explored")]
    pub(crate) explored: OnceLock<AtomicU64>,
}

impl Default for ModuleClock {
    fn default() -> ModuleClock {
        ModuleClock {
            origin: Instant::now(),
            sleeps_until: AtomicU64::default(),
            thread: OnceLock::default(),
            #[cfg(feature = "explored")]
            explored: OnceLock::default(),
        }
    }
}

/// The wall clock since the Unix epoch.
pub(crate) fn wall() -> Micros {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros)
}

fn micros(duration: Duration) -> Micros {
    duration.as_secs().saturating_mul(SECOND) + Micros::from(duration.subsec_micros())
}

impl ModuleClock {
    /// The monotonic clock.
    pub(crate) fn monotonic(&self) -> Micros {
        #[cfg(feature = "explored")]
        if let Some(now) = self.explored.get() {
            return now.load(Ordering::SeqCst);
        }
        BEGIN + micros(self.origin.elapsed())
    }

    /// Until when the thread sleeps. Zero while it is awake.
    #[cfg(feature = "explored")]
    pub(crate) fn sleeps_until(&self) -> Micros {
        self.sleeps_until.load(Ordering::SeqCst)
    }

    /// Starts the thread, unless it runs.
    pub(crate) fn start(&self, run: impl FnOnce() + Send + 'static) {
        #[cfg(feature = "explored")]
        if self.explored.get().is_some() {
            return;
        }
        self.thread.get_or_init(|| match thread::Builder::new().name("diana".into()).spawn(run) {
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
    pub(crate) fn notify(&self, due: Micros) {
        if due >= self.sleeps_until.load(Ordering::SeqCst) {
            return;
        }
        #[cfg(feature = "explored")]
        if self.explored.get().is_some() {
            return self.sleeps_until.store(0, Ordering::SeqCst);
        }
        if let Some(Some(thread)) = self.thread.get() {
            thread.unpark();
        }
    }

    /// The thread sleeps until an instant, unless `is_stale`: a timer that was set in between has seen it awake.
    pub(crate) fn sleep(&self, until: Micros, is_stale: impl FnOnce() -> bool) {
        self.sleeps_until.store(until, Ordering::SeqCst);
        if !is_stale() {
            #[cfg(feature = "explored")]
            if self.explored.get().is_some() {
                // Until a timer wakes it.
                return;
            }
            thread::park_timeout(Duration::from_micros(until.saturating_sub(self.monotonic())));
        }
        self.sleeps_until.store(0, Ordering::SeqCst);
    }
}
