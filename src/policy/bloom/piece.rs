//! A filter that lies elsewhere, in pieces of some lines.

use super::filter::{counters, scale};
use super::{COUNTERS, Shape};
use crate::key::Key;

/// Lines of a piece.
const LINES: u64 = 64;

/// Bits before the first line of a piece.
const HEAD: u64 = 24 * 8;

impl Shape {
    /// How one of so many equal parts of it is laid out, in which a caller is counted as it would be in the whole.
    #[must_use]
    pub fn of_part(self, parts: u64) -> Shape {
        let parts = parts.max(1);
        let (callers, lines) = (self.callers.div_ceil(parts), self.lines.div_ceil(parts));
        Shape { callers, lines, ..self }
    }

    /// The number of the piece in which a caller is counted, and where its counters lie in it: the bit
    /// at which each of them begins, in two bytes, the upper one first. At most 26 bytes.
    #[must_use]
    pub fn piece(&self, key: Key) -> (u64, Vec<u8>) {
        let line = scale(key.hash, self.lines);
        let start = HEAD + line % LINES * COUNTERS;
        let bit = |(word, shift): (usize, u32)| start + word as u64 * 64 + u64::from(shift);
        let bits = counters(self, key).map(|place| (bit(place) as u16).to_be_bytes());
        (line / LINES, bits.flatten().collect())
    }
}
