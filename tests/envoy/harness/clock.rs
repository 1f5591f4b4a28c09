//! Monotonic time with the origin of the wall clock of Envoys and Redis.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kit::process_clock::to_mid_hour;

/// A clock that never steps.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    wall: u64,
}

impl Clock {
    pub fn new() -> Self {
        loop {
            let start = Instant::now();
            let wall = micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap());
            // An interruption between the two readings would make the origin wrong.
            if start.elapsed() < Duration::from_micros(100) {
                let wall = wall.checked_add_signed(to_mid_hour()).unwrap();
                return Self { start, wall };
            }
        }
    }

    /// The instant of its creation.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// Microseconds of Unix time.
    pub fn now(&self) -> u64 {
        self.at(Instant::now())
    }

    /// Microseconds of Unix time at an instant.
    pub fn at(&self, instant: Instant) -> u64 {
        self.wall + micros(instant.saturating_duration_since(self.start))
    }
}

fn micros(duration: Duration) -> u64 {
    duration.as_micros().try_into().unwrap()
}
