//! Waiting for a condition, never for a fixed time.

use std::thread;
use std::time::{Duration, Instant};

/// Repeats `ask` until it returns a value. Fails the test after a minute. A sentinel without
/// processor time is inactive for half a minute (TILT).
#[track_caller]
pub fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
