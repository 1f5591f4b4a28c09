//! What is out of a caller's permits, by the term in which it went out.

use super::TERM;

/// Permits that may come back: those of the term before, and those of this one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms {
    pub term: u64,
    leased: [u64; 2],
    tentative: [u64; 2],
}

impl Terms {
    /// Forgets what cannot come back at `now`.
    pub fn age(&mut self, now: u64) {
        let current = now / TERM;
        match current - self.term {
            0 => return,
            1 => {
                self.leased = [self.leased[1], 0];
                self.tentative = [self.tentative[1], 0];
            }
            _ => (self.leased, self.tentative) = ([0; 2], [0; 2]),
        }
        self.term = current;
    }

    pub fn goes_out(&mut self, leased: u64, tentative: u64) {
        self.leased[1] += leased;
        self.tentative[1] += tentative;
    }

    /// Whether a block, or a cost where there is none, still counted, which now does no longer.
    pub fn comes_in(&mut self, term: u64, block: u64, cost: u64) -> bool {
        let Some(age @ 0..2) = self.term.checked_sub(term) else { return false };
        let (counts, permits) = match block {
            0 => (&mut self.tentative, cost),
            _ => (&mut self.leased, block),
        };
        let count = &mut counts[1 - age as usize];
        let left = count.checked_sub(permits);
        *count = left.unwrap_or(*count);
        left.is_some()
    }

    pub fn nothing_is_out(&mut self) {
        (self.leased, self.tentative) = ([0; 2], [0; 2]);
    }

    /// What is out on lease.
    pub fn leased(&self) -> u64 {
        self.leased.iter().sum()
    }

    /// What is out on lease of this term.
    pub fn leased_last(&self) -> u64 {
        self.leased[1]
    }

    /// All that is out.
    pub fn out(&self) -> u64 {
        self.leased() + self.tentative.iter().sum::<u64>()
    }

    /// When none of it is out any more.
    pub fn over(&self) -> u64 {
        let this = self.leased[1] + self.tentative[1] > 0;
        (self.term + if this { 2 } else { 1 }) * TERM
    }
}
