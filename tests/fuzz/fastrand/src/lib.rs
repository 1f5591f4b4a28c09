//! The part of the crate `fastrand` that our tests use, with external bytes as its source, so that
//! a fuzzer controls the random choices of a test. After the last byte, a fixed generator
//! continues.

use std::cell::RefCell;
use std::ops::{Bound, RangeBounds};

thread_local! {
    static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Sets the bytes for the next generator.
pub fn feed(bytes: &[u8]) {
    BYTES.replace(bytes.to_vec());
}

/// A generator.
#[derive(Debug, Clone)]
pub struct Rng {
    bytes: Vec<u8>,
    place: usize,
    /// The state of the fixed generator.
    state: u64,
}

/// A number that can be drawn.
pub trait Number: Copy {
    const FIRST: Self;
    const LAST: Self;
    fn wide(self) -> i128;
    fn narrow(wide: i128) -> Self;
}

macro_rules! numbers {
    ($($name:ident)*) => {
        $(impl Number for $name {
            const FIRST: $name = $name::MIN;
            const LAST: $name = $name::MAX;

            fn wide(self) -> i128 {
                self as i128
            }

            fn narrow(wide: i128) -> $name {
                wide as $name
            }
        })*

        impl Rng {
            $(pub fn $name(&mut self, range: impl RangeBounds<$name>) -> $name {
                self.number(range)
            })*
        }
    };
}

numbers!(u8 u16 u32 u64 usize i64);

impl Rng {
    /// Takes the bytes from `feed`. Without any it is an ordinary generator.
    pub fn with_seed(seed: u64) -> Rng {
        Rng { bytes: BYTES.take(), place: 0, state: seed }
    }

    /// Another generator without bytes.
    pub fn fork(&mut self) -> Rng {
        Rng { bytes: Vec::new(), place: 0, state: self.u64(..) }
    }

    /// At least 0 and less than 1.
    pub fn f64(&mut self) -> f64 {
        self.u64(0..1 << 53) as f64 / (1_u64 << 53) as f64
    }

    pub fn bool(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A random element.
    pub fn choice<'c, T>(&mut self, choices: &'c [T]) -> Option<&'c T> {
        if choices.is_empty() { None } else { choices.get(self.usize(0..choices.len())) }
    }

    /// Returns true if all bytes are used up.
    pub fn is_done(&self) -> bool {
        self.place >= self.bytes.len()
    }

    /// The unused bytes, at most `most`.
    pub fn rest(&mut self, most: usize) -> Vec<u8> {
        let rest: Vec<u8> = self.bytes.iter().skip(self.place).take(most).copied().collect();
        self.place += rest.len();
        rest
    }

    fn byte(&mut self) -> u8 {
        if let Some(byte) = self.bytes.get(self.place) {
            self.place += 1;
            return *byte;
        }
        // Splitmix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 56) as u8
    }

    fn number<N: Number>(&mut self, range: impl RangeBounds<N>) -> N {
        let low = match range.start_bound() {
            Bound::Included(low) => low.wide(),
            Bound::Excluded(low) => low.wide() + 1,
            Bound::Unbounded => N::FIRST.wide(),
        };
        let high = match range.end_bound() {
            Bound::Included(high) => high.wide(),
            Bound::Excluded(high) => high.wide() - 1,
            Bound::Unbounded => N::LAST.wide(),
        };
        assert!(low <= high, "an empty range");
        // As many bytes as the range needs, so that small choices keep their positions.
        let (mut spread, mut drawn) = ((high - low) as u128, 0_u128);
        while spread > 0 {
            drawn = drawn << 8 | u128::from(self.byte());
            spread >>= 8;
        }
        N::narrow(low + (drawn % ((high - low) as u128 + 1)) as i128)
    }
}
