//! The leases of a caller in all workers together, in one word of a slot.
//!
//! Leases are counted by the lease term in which they were taken, and expire at the end of the next
//! one. Thus the leases of a dead worker expire even if other workers renew theirs. A lease is
//! spent for a much shorter time, so that its rest is returned while it still counts as
//! outstanding, also by a worker that was suspended for a while. Permits that are missing and not
//! outstanding were used.

use diana_algorithm::Algorithm;
use diana_policy::time::{Micros, SECOND};

/// A lease counts for one or two terms.
const TERM: Micros = SECOND / 2;

/// Terms by which a worker may be late.
const LATE: u64 = 120;

/// Bits of a count in the word, and of the term's number. The first bit of the word marks that
/// there is a number.
const COUNT: u32 = 23;
const NUMBER: u32 = 17;

/// The maximum of one count.
const MOST: u64 = (1 << COUNT) - 1;

/// The sum of all leases of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Outstanding {
    /// The latest term in which the caller was read.
    term: u64,
    /// Permits of leases that were taken in the previous term.
    before: u64,
    /// Permits of leases that were taken in this term.
    during: u64,
}

/// The instant at which a lease that was taken in `term` expires.
pub(crate) fn over(term: u64) -> Micros {
    term.saturating_add(2).saturating_mul(TERM)
}

impl Outstanding {
    /// Parses the word at `now`. It has 17 bits of the term's number, which repeat after eighteen
    /// hours: a lease that was never returned then counts again for a moment.
    pub(crate) fn unpack(word: u64, now: Micros) -> Outstanding {
        let current = now / TERM;
        if word == 0 {
            return Outstanding { term: current, ..Outstanding::default() };
        }
        let term = nearest(word >> (2 * COUNT), current);
        // This worker may have read its clock a while ago, and other workers a later time.
        let term = if term > current + LATE { current } else { term };
        Outstanding { term, before: word >> COUNT & MOST, during: word & MOST }
    }

    /// The word; zero without outstanding permits.
    pub(crate) fn pack(self) -> u64 {
        let number = 1 << NUMBER | self.term & ((1 << NUMBER) - 1);
        if self.out() > 0 { number << (2 * COUNT) | self.before << COUNT | self.during } else { 0 }
    }

    /// All outstanding permits.
    pub(crate) fn out(self) -> u64 {
        self.before + self.during
    }

    /// The number of permits that can be added.
    pub(crate) fn room(self) -> u64 {
        MOST.saturating_sub(self.during)
    }

    /// The term in which a lease that is taken now is counted.
    pub(crate) fn term(self) -> u64 {
        self.term
    }

    /// With another lease.
    pub(crate) fn with(self, permits: u64) -> Outstanding {
        Outstanding { during: self.during + permits, ..self }
    }

    /// Without a lease that was counted in `term`. `None` if it has expired.
    pub(crate) fn without(self, permits: u64, term: u64) -> Option<Outstanding> {
        if term == self.term {
            Some(Outstanding { during: self.during.checked_sub(permits)?, ..self })
        } else if term + 1 == self.term {
            Some(Outstanding { before: self.before.checked_sub(permits)?, ..self })
        } else {
            None
        }
    }

    /// Drops permits that have expired at `now`.
    pub(crate) fn age(&mut self, now: Micros) {
        while self.out() > 0 && self.term < now / TERM {
            *self = Outstanding { term: self.term + 1, before: self.during, during: 0 };
        }
        self.term = self.term.max(now / TERM);
    }

    /// Brings it and `state` to `now`: outstanding permits count as unspent while they are
    /// outstanding.
    pub(crate) fn settle(
        &mut self,
        algorithm: &dyn Algorithm,
        state: &mut [u64],
        scratch: &mut [u64],
        now: Micros,
    ) {
        let mut hold_back = |out, at| {
            algorithm.hold_back(state, out, at, scratch);
            state.swap_with_slice(scratch);
        };
        while self.out() > 0 {
            let end = (self.term + 1).saturating_mul(TERM);
            hold_back(self.out(), end.min(now));
            if now < end {
                return;
            }
            *self = Outstanding { term: self.term + 1, before: self.during, during: 0 };
        }
        self.term = self.term.max(now / TERM);
    }
}

/// The number nearest to `current` with the same low bits as `number`.
fn nearest(number: u64, current: u64) -> u64 {
    const HALF: u64 = 1 << (NUMBER - 1);
    let mask = (1 << NUMBER) - 1;
    let ahead = (number.wrapping_sub(current) & mask).wrapping_add(HALF) & mask;
    current.wrapping_add(ahead).saturating_sub(HALF)
}
