//! What a request turned out to use, beside what was reserved for it.

use crate::time::Micros;

/// A charge that is settled, once, when it is known what its request used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    /// Under which the permits were charged that were reserved.
    pub receipt: u64,
    /// When they were, on the monotonic clock.
    pub since: Micros,
    /// How many they were.
    pub reserved: u64,
    /// How many the request used.
    pub used: u64,
}

impl Settlement {
    /// Whether it was what was reserved.
    #[must_use]
    pub fn is_even(&self) -> bool {
        self.reserved == self.used
    }

    /// Permits that were reserved too much.
    #[must_use]
    pub fn back(&self) -> u64 {
        self.reserved.saturating_sub(self.used)
    }

    /// Permits that were reserved too little.
    #[must_use]
    pub fn debt(&self) -> u64 {
        self.used.saturating_sub(self.reserved)
    }
}
