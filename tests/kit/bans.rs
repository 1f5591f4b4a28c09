//! Calls of a limiter to the bans of a rule.

use diana_policy::key::Key;
use diana_policy::time::Now;
use diana_store::bans::Bans;
use diana_store::{Reservation, Store};

/// Calls of a limiter to the bans of a rule.
pub trait Calls {
    /// Ticks for which a caller is banned.
    fn left(&mut self, key: Key, now: u64) -> u64;
    /// Counts a refusal.
    fn refused(&mut self, key: Key, now: u64);
    /// Counts the gathered refusals.
    fn maintain_at(&mut self, now: u64);
}

impl Calls for Bans {
    fn left(&mut self, key: Key, now: u64) -> u64 {
        let mut reservation = Reservation::new(key.into(), 0, instant(now));
        self.check(&mut reservation);
        left(&reservation)
    }

    fn refused(&mut self, key: Key, now: u64) {
        self.charge(&mut Reservation::new(key.into(), 1, instant(now)), 0);
    }

    fn maintain_at(&mut self, now: u64) {
        let begun = self.maintain(instant(now)).bans;
        // Tests read the count.
        self.begun = begun;
    }
}

/// An instant of the monotonic clock.
pub fn instant(mono: u64) -> Now {
    Now { mono, wall: 0 }
}

/// The remaining ticks of a ban that refuses a request; zero without one.
pub fn left(reservation: &Reservation) -> u64 {
    reservation.refused().and_then(|refused| refused.retry.ticks()).unwrap_or(0)
}
