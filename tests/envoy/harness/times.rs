//! When each test had the machine, for `tools/check.py`, which wants to know if that stood still meanwhile.

use std::fs::OpenOptions;
use std::io::Write;
use std::thread;

use super::clock::Clock;

/// Names the file that the times are added to.
const VARIABLE: &str = "DIANA_TEST_TIMES";

/// The time of the test whose thread made it; dropping it adds a line `begin end name` to the file.
pub struct Time {
    clock: Clock,
    began: u64,
}

impl Time {
    pub fn begin() -> Time {
        let clock = Clock::new();
        Time { clock, began: clock.now() }
    }

    fn note(&self) -> Option<()> {
        let path = std::env::var_os(VARIABLE)?;
        let thread = thread::current();
        let line = format!("{} {} {}\n", self.began, self.clock.now(), thread.name()?);
        // In one piece, as other tests add theirs.
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .ok()?
            .write_all(line.as_bytes())
            .ok()
    }
}

impl Drop for Time {
    fn drop(&mut self) {
        // A test without a time is not excused.
        let _ = self.note();
    }
}
