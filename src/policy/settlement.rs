//! The settlement of a reservation.

use crate::time::Micros;

/// The replacement of a reservation by the usage of its request, made once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    /// The receipt of the reserved charge.
    pub receipt: u64,
    /// The instant of that charge on the monotonic clock.
    pub since: Micros,
    /// The reserved permits.
    pub reserved: u64,
    /// The used permits.
    pub used: u64,
}

impl Settlement {
    /// Returns true if the reservation equals the usage.
    #[must_use]
    pub fn is_even(&self) -> bool {
        self.reserved == self.used
    }

    /// The unused permits of the reservation.
    #[must_use]
    pub fn back(&self) -> u64 {
        self.reserved.saturating_sub(self.used)
    }

    /// The permits used beyond the reservation.
    #[must_use]
    pub fn debt(&self) -> u64 {
        self.used.saturating_sub(self.reserved)
    }
}
