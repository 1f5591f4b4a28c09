//! The settlement of a reservation.

use crate::time::Micros;

/// The replacement of a reservation by the usage of its request, made once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    /// The receipt of the reserved charge.
    pub receipt: u64,
    /// The instant of that charge on the monotonic clock. If the permits were held back since then,
    /// the end of that time.
    pub since: Micros,
    /// The reserved permits.
    pub reserved: u64,
    /// The used permits.
    pub used: u64,
}

impl Settlement {
    /// Gives `permits` back that let no request through. A bucket gets back all of them, so they
    /// must have been held back until now, or charged at this instant.
    #[must_use]
    pub fn refund(receipt: u64, permits: u64) -> Settlement {
        Settlement { receipt, since: Micros::MAX, reserved: permits, used: 0 }
    }

    /// Charges `permits` that were used without a charge.
    #[must_use]
    pub fn debit(permits: u64) -> Settlement {
        Settlement { receipt: 0, since: 0, reserved: 0, used: permits }
    }

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
