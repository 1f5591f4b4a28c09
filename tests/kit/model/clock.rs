//! Redis's clock may step back. The derived clock of the fleet does not.

use diana_policy::time::{Now, SECOND};

#[derive(Default)]
pub struct Clock {
    /// The latest time of Redis.
    latest: u64,
    /// Ticks that the monotonic clock is ahead of it.
    ahead: u64,
}

impl Clock {
    /// Both clocks, for the wall clock `time` of Redis.
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
