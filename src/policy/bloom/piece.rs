//! The layout of a filter in Redis, where it is stored in pieces.

use super::filter::{counters, scale};
use super::{COUNTERS, Shape};
use crate::key::Key;

/// Lines in a piece.
const LINES: u64 = 64;

/// Bits before the first line of a piece.
const HEAD: u64 = 24 * 8;

impl Shape {
    /// The layout of one of `parts` equal parts. A caller has the same counters in it as in the
    /// whole filter.
    #[must_use]
    pub fn of_part(self, parts: u64) -> Shape {
        let parts = parts.max(1);
        let (callers, lines) = (self.callers.div_ceil(parts), self.lines.div_ceil(parts));
        Shape { callers, lines, ..self }
    }

    /// The number of a caller's piece, and the positions of its counters: the bit at which each
    /// begins, as two bytes, big-endian. At most 26 bytes.
    #[must_use]
    pub fn piece(&self, key: Key) -> (u64, Vec<u8>) {
        let line = scale(key.hash, self.lines);
        let start = HEAD + line % LINES * COUNTERS;
        let bit = |(word, shift): (usize, u32)| start + word as u64 * 64 + u64::from(shift);
        let bits = counters(self, key).map(|place| (bit(place) as u16).to_be_bytes());
        (line / LINES, bits.flatten().collect())
    }
}
