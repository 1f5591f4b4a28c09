//! A blocked counting Bloom filter: counts of many callers in fixed memory.
//!
//! Each caller has a few counters. The lowest is its count. It is too high if all of them are
//! shared with other callers, and never too low. A limit on the count is thus never exceeded, and a
//! caller is refused too early with a probability that determines the size of the filter.
//!
//! All counters of a caller are in one line of 64 bytes, as in Putze, Sanders and Singler, "Cache-,
//! Hash- and Space-Efficient Bloom Filters" (2007). They are raised only as far as necessary, as in
//! Estan and Varghese, "New Directions in Traffic Measurement and Accounting" (2002).

mod chance;
mod filter;
mod piece;

pub use filter::Filter;

use chance::{LOAD, most_load};

/// Bytes of a line. The last two hold the age of its counts.
const LINE: u64 = 64;
const COUNTERS: u64 = 496;

/// Possible widths of a counter in bits: the divisors of a word.
const WIDTHS: [u64; 6] = [1, 2, 4, 8, 16, 32];

/// Maximum number of counters per caller. More do not save memory at any permitted error.
const MOST_ROWS: u64 = 13;

/// The layout of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The number of callers that determines its size.
    pub callers: u64,
    lines: u64,
    /// Bits of a counter.
    width: u64,
    /// Counters per caller, one in each row of a line.
    rows: u64,
    /// Counters in a row.
    places: u64,
}

impl Shape {
    /// The smallest filter for counts up to `most` (1 … 2³²−1) of up to `callers` callers (1 …
    /// 2³²). A count is too high with a probability of at most `error` millionths, even for the
    /// last of these callers.
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

    /// The size of the full filter in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lines * LINE
    }

    /// The parameters that determine the position of a caller's counters.
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
