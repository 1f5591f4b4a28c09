//! A ring of counters over slices of time, cleared lazily.
//!
//! The state is one word for the newest slice, and the counters: two per word, or one per word in a
//! wide ring. A store replaces it as one value, so no writer can lose another's count at the
//! beginning of a slice. All zero is an empty ring.

use crate::MAX_USED;

/// The maximum of a counter of 32 bits.
const NARROW: u64 = u32::MAX as u64;

/// The shape of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    counters: usize,
    /// The maximum of a counter, and the mask of its bits.
    most: u64,
}

impl Ring {
    /// A ring of `counters` slices, at least one. Counters end at 2³²−1.
    #[must_use]
    pub const fn new(counters: usize) -> Ring {
        Ring { counters: if counters > 0 { counters } else { 1 }, most: NARROW }
    }

    /// The same with counters up to [`MAX_USED`].
    #[must_use]
    pub const fn wide(counters: usize) -> Ring {
        Ring { most: MAX_USED, ..Ring::new(counters) }
    }

    fn is_wide(&self) -> bool {
        self.most > NARROW
    }

    /// Words of state.
    #[must_use]
    pub fn words(&self) -> usize {
        1 + if self.is_wide() { self.counters } else { self.counters.div_ceil(2) }
    }

    /// The newest slice in `state`.
    #[must_use]
    pub fn newest(&self, state: &[u64]) -> u64 {
        state.first().copied().unwrap_or(0)
    }

    /// The count of `slice`. Zero if it is newer than the newest slice, or no longer in the ring.
    #[must_use]
    pub fn count(&self, state: &[u64], slice: u64) -> u64 {
        let newest = self.newest(state);
        if slice > newest || newest - slice >= self.counters as u64 {
            return 0;
        }
        self.counter(state, slice)
    }

    /// The sum of the slices that are in the ring when `slice` is the newest.
    #[must_use]
    pub fn sum(&self, state: &[u64], slice: u64) -> u64 {
        let newest = self.newest(state);
        let gone: u64 = self
            .slices(newest)
            .take_while(|old| slice.saturating_sub(*old) >= self.counters as u64)
            .map(|old| self.counter(state, old))
            .sum();
        let counters = state.get(1..).unwrap_or_default().iter();
        let all: u64 = match self.is_wide() {
            true => counters.map(|word| word & self.most).sum(),
            false => counters.map(|word| (word >> 32) + (word & NARROW)).sum(),
        };
        all - gone.min(all)
    }

    /// The slices that are in the ring when `newest` is the newest, oldest first.
    pub fn slices(&self, newest: u64) -> impl Iterator<Item = u64> + use<> {
        newest.saturating_sub(self.counters as u64 - 1)..newest.saturating_add(1)
    }

    /// Adds `amount` to `slice`, or to the newest slice if that is later. Counters saturate.
    pub fn add(&self, state: &mut [u64], slice: u64, amount: u64) {
        let newest = self.newest(state);
        let slice = slice.max(newest);
        let oldest = slice.saturating_sub(self.counters as u64);
        for gone in oldest.max(newest.saturating_add(1))..slice.saturating_add(1) {
            self.set(state, gone, 0);
        }
        let (word, shift) = self.place(slice);
        if let Some(word) = state.get_mut(word) {
            let room = self.most - (*word >> shift & self.most);
            *word += amount.min(room) << shift;
        }
        if let Some(first) = state.first_mut() {
            *first = slice;
        }
    }

    /// Adds `amount` to `slice`, if it is in the ring.
    pub fn add_late(&self, state: &mut [u64], slice: u64, amount: u64) {
        let newest = self.newest(state);
        if amount == 0 || slice >= newest {
            self.add(state, slice.max(newest), amount);
        } else if newest - slice < self.counters as u64 {
            let count = self.counter(state, slice).saturating_add(amount);
            self.set(state, slice, count.min(self.most));
        }
    }

    /// Subtracts up to `amount` from the count of `slice`, if it is still in the ring.
    pub fn take(&self, state: &mut [u64], slice: u64, amount: u64) {
        let count = self.count(state, slice);
        if count > 0 {
            self.set(state, slice, count.saturating_sub(amount));
        }
    }

    /// Word and shift of the counter of `slice`.
    fn place(&self, slice: u64) -> (usize, u32) {
        let index = (slice % self.counters as u64) as usize;
        if self.is_wide() { (1 + index, 0) } else { (1 + index / 2, (index % 2) as u32 * 32) }
    }

    fn counter(&self, state: &[u64], slice: u64) -> u64 {
        let (word, shift) = self.place(slice);
        state.get(word).map_or(0, |word| word >> shift & self.most)
    }

    fn set(&self, state: &mut [u64], slice: u64, count: u64) {
        let (word, shift) = self.place(slice);
        if let Some(word) = state.get_mut(word) {
            *word = *word & !(self.most << shift) | count << shift;
        }
    }
}
