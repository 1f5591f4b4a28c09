//! Outstanding permits of a caller, by the term of their charge.

use super::{LONG, TERM};

/// Permits that may be returned: for each kind those of the previous term, and those of the current
/// one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms {
    pub term: u64,
    leased: [u64; 2],
    tentative: [u64; 2],
}

/// Advances the charges of two terms by a number of terms.
fn pass(charges: &mut [u64; 2], terms: u64) {
    match terms {
        0 => {}
        1 => *charges = [charges[1], 0],
        _ => *charges = [0; 2],
    }
}

/// The end of the last charge, of two terms that end with the current one.
fn over(charges: [u64; 2], term: u64, length: u64) -> u64 {
    match charges {
        [0, 0] => 0,
        [_, 0] => (term + 1) * length,
        _ => (term + 2) * length,
    }
}

/// The term of leases that a term is in.
fn long(term: u64) -> u64 {
    term / (LONG / TERM)
}

impl Terms {
    /// Removes permits that can no longer be returned at `now`.
    pub fn age(&mut self, now: u64) {
        let long_terms = now / LONG - self.long_term();
        pass(&mut self.leased, long_terms);
        pass(&mut self.tentative, now / TERM - self.term);
        self.term = now / TERM;
    }

    pub fn goes_out(&mut self, leased: u64, tentative: u64) {
        self.leased[1] += leased;
        self.tentative[1] += tentative;
    }

    /// Returns a block, or a cost if there is no block. Returns true if it still counted.
    pub fn comes_in(&mut self, term: u64, block: u64, cost: u64) -> bool {
        let long_terms = self.long_term().checked_sub(long(term));
        let (counts, ago, permits) = match block {
            0 => (&mut self.tentative, self.term.checked_sub(term), cost),
            _ => (&mut self.leased, long_terms, block),
        };
        let Some(ago @ 0..2) = ago else { return false };
        let count = &mut counts[1 - ago as usize];
        let left = count.checked_sub(permits);
        *count = left.unwrap_or(*count);
        left.is_some()
    }

    pub fn nothing_is_out(&mut self) {
        (self.leased, self.tentative) = ([0; 2], [0; 2]);
    }

    /// The term that leases are counted in.
    pub fn long_term(&self) -> u64 {
        long(self.term)
    }

    /// The outstanding leases.
    pub fn leased(&self) -> u64 {
        self.leased.iter().sum()
    }

    /// The outstanding leases of the current term.
    pub fn leased_last(&self) -> u64 {
        self.leased[1]
    }

    /// All outstanding permits.
    pub fn out(&self) -> u64 {
        self.leased() + self.tentative.iter().sum::<u64>()
    }

    /// The end of the last outstanding lease.
    pub fn leases_over(&self) -> u64 {
        over(self.leased, self.long_term(), LONG)
    }
}
