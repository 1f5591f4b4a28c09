//! The numbers that the host gives to what is written in shared data.
//!
//! It numbers all writes of all values in turn, and does not tell the number of a write. So a worker counts its own, and
//! reads the number of one of so many. Where others write, too, what it has counted is less than the truth.

/// How many writes are counted from one that is read to the next.
const PROVED: u32 = 64;

/// A number that no value ever has: written with it, a value is only ever inserted.
pub const INSERT: u32 = u32::MAX;

/// What a worker knows of the numbers.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// That of its last write, or an earlier one.
    last: u32,
    /// Writes since one was read.
    counted: u32,
}

impl Numbers {
    /// Nothing is known yet.
    pub const UNKNOWN: Numbers = Numbers { last: 0, counted: PROVED };

    /// The worker has written a value.
    pub fn wrote(&mut self) {
        // There is no zero.
        self.last = self.last.checked_add(1).unwrap_or(1);
        self.counted = self.counted.saturating_add(1);
    }

    /// The number of the worker's last write, as far as it is known: that of `value`, which `read` reads; never one that
    /// another value has or is going to have there.
    pub fn last(
        &mut self,
        value: &[u8],
        read: impl FnOnce() -> Option<(Vec<u8>, u32)>,
    ) -> Option<u32> {
        if self.counted >= PROVED {
            let (found, number) = read()?;
            *self = Numbers { last: number, counted: 0 };
            if found != value {
                // Somebody else has written there meanwhile, and it is the number of that.
                return None;
            }
        }
        (self.last != INSERT).then_some(self.last)
    }
}
