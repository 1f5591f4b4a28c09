//! A blocked counting Bloom filter: counts of many callers in fixed memory.
//!
//! Each caller has a few counters, and the least of them is its count, or more than that where others
//! share all of its counters: never less. So who goes by it gives nobody too much, and refuses
//! somebody too early with a chance that the filter is sized by.
//!
//! All counters of a caller lie in one line of 64 bytes, as in Putze, Sanders and Singler, "Cache-,
//! Hash- and Space-Efficient Bloom Filters" (2007), and are raised no further than they must, as in
//! Estan and Varghese, "New Directions in Traffic Measurement and Accounting" (2002).

mod chance;
mod filter;
mod piece;

pub use filter::Filter;

use chance::{LOAD, most_load};

/// Bytes of a line, of which the last two tell how old its counts are.
const LINE: u64 = 64;
const COUNTERS: u64 = 496;

/// Bits that a counter may have: those that divide a word.
const WIDTHS: [u64; 6] = [1, 2, 4, 8, 16, 32];

/// Most counters of a caller. More would not save memory at any error that may be asked for.
const MOST_ROWS: u64 = 13;

/// How a filter is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Callers that it is made for.
    pub callers: u64,
    lines: u64,
    /// Bits of a counter.
    width: u64,
    /// Counters of a caller, one in each row of a line.
    rows: u64,
    /// Counters in a row.
    places: u64,
}

impl Shape {
    /// The smallest filter in which counts up to `most` (1 … 2³²−1) of up to `callers` callers
    /// (1 … 2³²) are too high with a chance of at most `error` millionths, even for who comes last,
    /// when all others have come.
    #[must_use]
    pub fn new(callers: u64, error: u64, most: u64) -> Shape {
        let width = WIDTHS.into_iter().find(|width| most >> width == 0).unwrap_or(32);
        let counters = COUNTERS / width;
        let (mut load, mut rows, mut places) = (0, 1, counters);
        for more in 1..=MOST_ROWS.min(counters / 2) {
            if let Some(higher) = most_load(counters / more, more, error, load) {
                (load, rows, places) = (higher, more, counters / more);
            }
        }
        let lines = (callers * LOAD).div_ceil(load.max(1)).max(1);
        Shape { callers, lines, width, rows, places }
    }

    /// Bytes that the filter grows to.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lines * LINE
    }

    /// What tells where a caller is counted, apart from the caller.
    #[must_use]
    pub fn layout(&self) -> [u64; 4] {
        [self.lines, self.width, self.rows, self.places]
    }

    /// Bits of a counter.
    #[must_use]
    pub fn width(&self) -> u64 {
        self.width
    }

    /// The highest count.
    #[must_use]
    pub fn most(&self) -> u64 {
        (1 << self.width) - 1
    }
}
