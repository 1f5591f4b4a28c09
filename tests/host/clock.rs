//! The two clocks of the host, which tests set.

use std::cell::Cell;

use fastrand::Rng;

/// Wall and monotonic time in microseconds. Their origins differ, as in reality.
pub struct Clock {
    wall: Cell<u64>,
    monotonic: Cell<u64>,
}

impl Clock {
    /// A random instant of the year 2026, on a machine with an uptime of up to a month.
    pub fn new(random: &mut Rng) -> Clock {
        let year = 1_767_225_600_000_000..1_798_761_600_000_000;
        let uptime = 1_000_000..2_592_000_000_000;
        Clock { wall: Cell::new(random.u64(year)), monotonic: Cell::new(random.u64(uptime)) }
    }

    pub fn wall(&self) -> u64 {
        self.wall.get()
    }

    pub fn monotonic(&self) -> u64 {
        self.monotonic.get()
    }

    /// Sets the monotonic clock before its first use.
    pub fn set_monotonic(&self, micros: u64) {
        self.monotonic.set(micros);
    }

    /// Advances both clocks.
    pub fn advance(&self, micros: u64) {
        self.wall.set(self.wall.get() + micros);
        self.monotonic.set(self.monotonic.get() + micros);
    }

    /// Moves the wall clock forward or back, as an operator or NTP does.
    pub fn step_wall(&self, micros: i64) {
        self.wall.set(self.wall.get().saturating_add_signed(micros));
    }
}
