//! A sliding window by slices, for operations that the step in Rust does not have.

use diana_policy::Quota;
use diana_policy::ring::Ring;

/// The slices of a rule.
#[derive(Clone, Copy)]
pub struct Slices {
    unit: u64,
    slices: u64,
    is_wide: bool,
}

impl Slices {
    pub fn new(quota: &Quota) -> Slices {
        let slices = quota.slices.unwrap_or(10);
        Slices { unit: quota.period(), slices, is_wide: quota.is_wide }
    }

    fn ring(self) -> Ring {
        let counters = self.slices as usize + 1;
        if self.is_wide { Ring::wide(counters) } else { Ring::new(counters) }
    }

    /// The slice of `time`.
    pub fn at(self, time: u64) -> u64 {
        let Slices { unit, slices, .. } = self;
        time / unit * slices + time % unit * slices / unit
    }

    /// Charges the current slice.
    pub fn charge(self, words: &mut [u64], cost: u64, now: u64) {
        self.ring().add(words, self.at(now), cost);
    }

    /// Charges the slice of a receipt, if it still counts.
    pub fn charge_late(self, words: &mut [u64], cost: u64, slice: u64, now: u64) {
        if slice <= self.at(now) {
            self.ring().add_late(words, slice, cost);
        }
    }

    /// Subtracts all usage, slice by slice.
    pub fn take_away(self, words: &mut [u64], used: &[u64], now: u64) {
        let newest = self.at(now);
        for slice in newest.saturating_sub(self.slices)..=newest {
            self.ring().take(words, slice, self.ring().count(used, slice));
        }
    }

    /// The permits of the current slice.
    pub fn newest(self, words: &[u64], now: u64) -> u64 {
        self.ring().count(words, self.at(now))
    }

    /// The permits that count as used.
    pub fn used(self, words: &[u64], now: u64) -> u64 {
        self.ring().sum(words, self.at(now))
    }
}
