//! What is leased of a sliding window's next slice, before it begins. The steps in Rust know nothing of
//! it: it counts in the slice in force as well, so that it can only make the window admit less.

use diana_core::decision::Decision;
use diana_core::policy::Quota;
use diana_core::ring::Ring;

use super::SOON;

/// The slices of a rule.
#[derive(Clone, Copy)]
pub struct Slices {
    unit: u64,
    slices: u64,
}

/// When the next slice begins and when it ends, and what is left for it.
pub struct Next {
    pub begins: u64,
    pub ends: u64,
    pub left: u64,
}

impl Slices {
    pub fn new(quota: &Quota) -> Slices {
        Slices { unit: quota.period(), slices: quota.slices.unwrap_or(10) }
    }

    fn ring(self) -> Ring {
        Ring::new(self.slices as usize + 1)
    }

    /// The slice that `time` lies in.
    pub fn at(self, time: u64) -> u64 {
        let Slices { unit, slices } = self;
        time / unit * slices + time % unit * slices / unit
    }

    /// The first tick of `slice`.
    pub fn start(self, slice: u64) -> u64 {
        let Slices { unit, slices } = self;
        slice / slices * unit + (slice % slices * unit).div_ceil(slices)
    }

    /// Begins the slice in force, and counts what was leased of it.
    pub fn turn(self, words: &mut [u64], next: &mut u64, now: u64) {
        let begun = self.ring().newest(words) + 1;
        if *next > 0 && self.at(now) >= begun {
            self.ring().add(words, begun, std::mem::take(next));
        }
        self.charge(words, 0, now);
    }

    /// Charges the slice in force.
    pub fn charge(self, words: &mut [u64], cost: u64, now: u64) {
        self.ring().add(words, self.at(now), cost);
    }

    /// Charges the slice that a receipt tells, if it counts.
    pub fn charge_late(self, words: &mut [u64], cost: u64, slice: u64, now: u64) {
        if slice <= self.at(now) {
            self.ring().add_late(words, slice, cost);
        }
    }

    /// Takes all that was used away, slice by slice.
    pub fn take_away(self, words: &mut [u64], used: &[u64], now: u64) {
        let newest = self.at(now);
        for slice in newest.saturating_sub(self.slices)..=newest {
            self.ring().take(words, slice, self.ring().count(used, slice));
        }
    }

    /// The answer to a request that nothing but what is leased of the next slice keeps from fitting.
    pub fn wait(self, now: u64) -> Decision {
        Decision::retry(self.start(self.at(now) + self.slices + 1) - now)
    }

    /// The answer to a request that lacks so many permits, which are those of the oldest slices.
    pub fn without(self, words: &[u64], mut over: u64, now: u64) -> Decision {
        if over == 0 {
            return Decision::NOW;
        }
        let newest = self.at(now);
        for slice in newest.saturating_sub(self.slices)..=newest {
            over = over.saturating_sub(self.ring().count(words, slice));
            if over == 0 {
                return Decision::retry(self.start(slice + self.slices + 1) - now);
            }
        }
        self.wait(now)
    }

    /// Permits that count as used.
    pub fn used(self, words: &[u64], next: u64, now: u64) -> u64 {
        self.ring().sum(words, self.at(now)) + next
    }

    /// When what is leased of the next slice is forgotten.
    pub fn after(self, words: &[u64]) -> u64 {
        self.start(self.ring().newest(words) + self.slices + 2)
    }

    /// The next slice, if it begins soon.
    pub fn next(self, words: &mut [u64], next: u64, rpu: u64, now: u64) -> Option<Next> {
        let slice = self.at(now);
        let (begins, ends) = (self.start(slice + 1), self.start(slice + 2));
        if begins - now > SOON.min((ends - begins) / 4) {
            return None;
        }
        self.ring().add(words, slice, 0);
        let used = self.used(words, next, now);
        let oldest = slice.checked_sub(self.slices);
        let forgotten = oldest.map_or(0, |oldest| self.ring().count(words, oldest));
        let left = (rpu + forgotten).saturating_sub(used);
        Some(Next { begins, ends, left })
    }
}
