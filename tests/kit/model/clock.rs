//! Redis's clock may step back, that of the fleet never does.

use diana_policy::time::{Now, SECOND};

#[derive(Default)]
pub struct Clock {
    /// The latest time that Redis told.
    latest: u64,
    /// How far ahead of it the monotonic clock is.
    ahead: u64,
}

impl Clock {
    /// Both clocks, when Redis tells `time`.
    pub fn read(&mut self, time: u64) -> Now {
        let back = self.latest.saturating_sub(time);
        if back > SECOND {
            self.ahead += back;
            self.latest = time;
        }
        self.latest = self.latest.max(time);
        Now { mono: self.latest + self.ahead, wall: self.latest }
    }
}
