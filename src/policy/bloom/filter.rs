//! The counters of a filter.

use super::{LINE, Shape};
use crate::key::Key;

/// Words of a line.
const WORDS: usize = LINE as usize / 8;

/// Lines in a page. A page is allocated when its first caller is counted.
const PAGE: usize = 256;

/// Position of the age in the last word of a line, above its counters.
const AGE: u32 = 48;

/// Has the size and the alignment of a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct FilterLine([u64; WORDS]);

/// A filter that can be cleared in constant time.
#[derive(Debug)]
pub struct Filter {
    shape: Shape,
    pages: Vec<Option<Box<[FilterLine]>>>,
    /// Lines of another age are empty. They are cleared when a caller is counted there. After
    /// 65,535 ages an untouched line becomes valid again, which can only raise counts.
    age: u16,
}

impl Filter {
    /// An empty filter.
    #[must_use]
    pub fn new(shape: Shape) -> Filter {
        let pages = shape.lines.div_ceil(PAGE as u64) as usize;
        Filter { shape, pages: vec![None; pages], age: 1 }
    }

    /// Its layout.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The count of a caller, at least the true one.
    #[must_use]
    pub fn count(&self, key: Key) -> u64 {
        let (page, line) = self.place(key);
        let page = self.pages.get(page).and_then(Option::as_ref);
        match page.and_then(|page| page.get(line)) {
            Some(line) if line.age() == self.age => line.count(&self.shape, key),
            _ => 0,
        }
    }

    /// Adds to the count of a caller, up to [`Shape::most`]. Returns the previous count.
    pub fn add(&mut self, key: Key, amount: u64) -> u64 {
        let (page, line) = self.place(key);
        let lines = (self.shape.lines as usize).saturating_sub(page * PAGE).min(PAGE);
        let page = self
            .pages
            .get_mut(page)
            .map(|page| page.get_or_insert_with(|| vec![FilterLine([0; WORDS]); lines].into()));
        let Some(line) = page.and_then(|page| page.get_mut(line)) else { return 0 };
        if line.age() != self.age {
            *line = FilterLine([0, 0, 0, 0, 0, 0, 0, u64::from(self.age) << AGE]);
        }
        let before = line.count(&self.shape, key);
        let after = before.saturating_add(amount).min(self.shape.most());
        line.raise(&self.shape, key, after);
        before
    }

    /// Clears the filter without touching its lines.
    pub fn clear(&mut self) {
        self.age = self.age.checked_add(1).unwrap_or(1);
    }

    /// Page and line of a caller.
    fn place(&self, key: Key) -> (usize, usize) {
        let line = scale(key.hash, self.shape.lines) as usize;
        (line / PAGE, line % PAGE)
    }
}

impl FilterLine {
    fn age(&self) -> u16 {
        let FilterLine([.., last]) = self;
        (last >> AGE) as u16
    }

    /// The lowest counter of a caller.
    fn count(&self, shape: &Shape, key: Key) -> u64 {
        let counter = |(word, shift)| self.0.get(word).map_or(0, |word: &u64| word >> shift);
        counters(shape, key).fold(shape.most(), |least, at| least.min(counter(at) & shape.most()))
    }

    /// Raises the counters of a caller to at least `count`.
    fn raise(&mut self, shape: &Shape, key: Key, count: u64) {
        for (word, shift) in counters(shape, key) {
            if let Some(word) = self.0.get_mut(word) {
                let counter = *word >> shift & shape.most();
                *word += count.saturating_sub(counter) << shift;
            }
        }
    }
}

/// Word and shift of each of a caller's counters.
pub(super) fn counters(shape: &Shape, key: Key) -> impl Iterator<Item = (usize, u32)> + use<> {
    let Shape { width, rows, places, .. } = *shape;
    let mut bits = key.second_hash;
    (0..rows).map(move |row| {
        // Steele and Vigna, "Computationally Easy, Spectrally Good Multipliers" (2021).
        bits = bits.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        let bit = (row * places + scale(bits, places)) * width;
        (bit as usize / 64, bit as u32 % 64)
    })
}

/// The upper half of `bits` as a number below `end`, which is at most 2³².
pub(super) fn scale(bits: u64, end: u64) -> u64 {
    ((bits >> 32) * end) >> 32
}
