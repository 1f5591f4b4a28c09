//! The clock and the thread of the module, in tests that try every order of events.

use std::sync::atomic::{AtomicU64, Ordering};

use diana_policy::time::Micros;

use crate::timers;

/// The monotonic clock. Zero before a test sets it.
static NOW: AtomicU64 = AtomicU64::new(0);

/// Sets the monotonic clock. Afterwards the module starts no thread for timers.
pub fn set_clock(now: Micros) {
    NOW.store(now, Ordering::SeqCst);
}

/// The clock of a test.
pub(crate) fn clock() -> Option<Micros> {
    Some(NOW.load(Ordering::SeqCst)).filter(|now| *now > 0)
}

/// Until when the thread for timers would sleep.
#[must_use]
pub fn next_due() -> Micros {
    timers::next_due()
}

/// Runs a wake-up of the thread for timers.
pub fn fire() {
    timers::fire();
}
