//! A line as it should be: slots exactly a unit's part apart, in fractions of a microsecond.

use super::SECOND;

/// How long after its slot a request goes on at the latest.
pub const LATEST: u64 = 2_000;

/// One caller's line of `rpu` slots a second.
pub struct Line {
    rpu: u64,
    max_queue: u64,
    /// The first slot that is not taken, in microseconds times `rpu`.
    free: u128,
}

impl Line {
    pub fn new(rpu: u64, max_queue: u64) -> Line {
        Line { rpu, max_queue, free: 0 }
    }

    /// The slot of a request that comes now, unless it lies too far ahead. Slots between two
    /// microseconds begin with the later one.
    pub fn slot(&mut self, now: u64) -> Option<u64> {
        let (rpu, unit) = (u128::from(self.rpu), u128::from(SECOND));
        let now = u128::from(now) * rpu;
        let slot = self.free.max(now);
        let reach = (u128::from(self.max_queue) * unit).min(unit * rpu);
        if slot - now > reach {
            return None;
        }
        self.free = slot + unit;
        Some(slot.div_ceil(rpu) as u64)
    }
}
