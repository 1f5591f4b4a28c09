//! The clock, the threads and the calls of the module, in tests that try every order of events.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use diana_policy::time::Micros;

use crate::calls::{CallId, CallReply, Deliver};
use crate::timers;

/// The monotonic clock. Zero before a test sets it.
static NOW: AtomicU64 = AtomicU64::new(0);

/// Calls to pipes without a reply.
static CALLS: Mutex<Vec<(CallId, Vec<u8>, Deliver)>> = Mutex::new(Vec::new());

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

/// Keeps a call to a pipe until the test replies. Returns false if no test does so.
pub(crate) fn keep(call: CallId, body: &[u8], deliver: Deliver) -> bool {
    let is_kept = clock().is_some();
    if is_kept {
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push((call, body.into(), deliver));
    }
    is_kept
}

/// The number of calls to pipes without a reply.
#[must_use]
pub fn calls() -> usize {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner).len()
}

/// One of the calls to pipes has the reply of this function to its bytes.
pub fn reply(number: usize, redis: impl FnOnce(&[u8]) -> Vec<u8>) {
    let kept = {
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        (number < calls.len()).then(|| calls.remove(number))
    };
    if let Some((call, body, deliver)) = kept {
        deliver(call, CallReply { status: Some(200), body: redis(&body), headers: Vec::new() });
    }
}
