//! What all workers together hold of a caller's permits, in one word of a slot.
//!
//! Leases are counted by the term in which they were taken, and are over at the end of the next one:
//! so that those of a worker that died end as well, however often the others renew theirs.

use crate::algorithm::Algorithm;
use crate::time::{Micros, SECOND};

/// A lease is counted for one or two terms, at most a second.
const TERM: Micros = SECOND / 2;

/// Terms by which a worker may be late.
const LATE: u64 = 120;

/// Bits that a count takes in the word, and those of the term's number.
const COUNT: u32 = 24;
const NUMBER: u32 = 16;

/// Most permits that one count holds.
const MOST: u64 = (1 << COUNT) - 1;

/// Permits out on lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Lent {
    /// The latest term in which there was a look.
    term: u64,
    /// Permits of leases that were taken in the term before it.
    before: u64,
    /// Permits of leases that were taken in it.
    during: u64,
}

/// The instant at which a lease that is taken at `now` is over.
pub(super) fn over(now: Micros) -> Micros {
    (now / TERM + 2).saturating_mul(TERM)
}

impl Lent {
    /// Reads the word at `now`. It has 16 bits of the term's number, which come again after nine hours:
    /// then a lease that nobody gave back counts for a second more.
    pub(super) fn unpack(word: u64, now: Micros) -> Lent {
        let current = now / TERM;
        if word == 0 {
            return Lent { term: current, before: 0, during: 0 };
        }
        let ahead = ((word >> (2 * COUNT)) as u16).wrapping_sub(current as u16).cast_signed();
        let term = current.saturating_add_signed(i64::from(ahead));
        // This worker may have read its clock a while ago, and others went on.
        let term = if term > current + LATE { current } else { term };
        Lent { term, before: word >> COUNT & MOST, during: word & MOST }
    }

    /// The word; zero if nothing is out.
    pub(super) fn pack(self) -> u64 {
        let number = self.term & ((1 << NUMBER) - 1);
        if self.out() == 0 { 0 } else { number << (2 * COUNT) | self.before << COUNT | self.during }
    }

    /// All permits that are out.
    pub(super) fn out(self) -> u64 {
        self.before + self.during
    }

    /// How many more can be counted.
    pub(super) fn room(self) -> u64 {
        MOST - self.during
    }

    /// The term in which a lease that is taken now is counted.
    pub(super) fn term(self) -> u64 {
        self.term
    }

    /// With a lease more.
    pub(super) fn with(self, permits: u64) -> Lent {
        Lent { during: self.during + permits, ..self }
    }

    /// Without a lease that was counted in `term`; nothing if it is not counted any more.
    pub(super) fn without(self, permits: u64, term: u64) -> Option<Lent> {
        if term == self.term {
            Some(Lent { during: self.during.checked_sub(permits)?, ..self })
        } else if term + 1 == self.term {
            Some(Lent { before: self.before.checked_sub(permits)?, ..self })
        } else {
            None
        }
    }

    /// Brings it and `state` to `now`: what is out on lease counts as not yet spent for as long as it
    /// is out.
    pub(super) fn settle(
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
            *self = Lent { term: self.term + 1, before: self.during, during: 0 };
        }
        self.term = self.term.max(now / TERM);
    }
}
