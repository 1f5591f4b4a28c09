//! Text that is written piece by piece, without what the standard library's way costs: several times as much, for each
//! refused request.

/// A longer piece takes less time by the machine's own copy, which has to be called for the shortest one, too.
const SHORT: usize = 32;

/// What is below it has nine digits at most, and 32 bits.
const BILLION: u64 = 1_000_000_000;

/// A text that is written, in memory that is used again.
#[derive(Debug, Clone, Default)]
pub struct Text {
    /// All of it has values, so that a piece can be copied into it word by word.
    room: Vec<u8>,
    length: usize,
}

impl Text {
    /// No text yet, and no memory for one.
    pub const NONE: Text = Text { room: Vec::new(), length: 0 };

    /// Begins anew.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Keeps the first bytes only.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Adds a piece.
    #[inline(never)]
    pub fn push(&mut self, piece: &str) {
        copy(piece.as_bytes(), self.more(piece.len()));
    }

    /// Adds a number in decimal.
    #[inline(never)]
    pub fn decimal(&mut self, number: u64) {
        if number < BILLION {
            let number = number as u32;
            write(number, self.more(number.checked_ilog10().unwrap_or(0) as usize + 1));
        } else {
            self.decimal(number / BILLION);
            write((number % BILLION) as u32, self.more(9));
        }
    }

    /// Adds a point, and millionths in six digits.
    #[inline(never)]
    pub fn millionths(&mut self, number: u64) {
        if let [point, places @ ..] = self.more(7) {
            *point = b'.';
            write((number % 1_000_000) as u32, places);
        }
    }

    /// Adds a number in hexadecimal, in so many digits at least.
    #[inline(never)]
    pub fn hexadecimal(&mut self, number: u64, least: usize) {
        let needed = (u64::BITS - number.leading_zeros()).div_ceil(4) as usize;
        let mut rest = number;
        for place in self.more(needed.max(least)).iter_mut().rev() {
            let digit = rest as u8 & 15;
            *place = digit + if digit < 10 { b'0' } else { b'a' - 10 };
            rest >>= 4;
        }
    }

    /// Bytes that it has.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.room.get(..self.length).unwrap_or_default()
    }

    /// The text, which takes a look at each byte of it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.room.capacity()
    }

    /// The place of so many bytes more, which are to be written.
    #[inline(always)]
    fn more(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.length;
        self.length += bytes;
        if self.length > self.room.len() {
            self.grow();
        }
        self.room.get_mut(start..self.length).unwrap_or_default()
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.room.resize(self.length.next_power_of_two(), 0);
    }
}

/// Writes the last digits of a number; in 32 bits, where nothing is divided but multiplied.
fn write(number: u32, places: &mut [u8]) {
    let mut rest = number;
    for place in places.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// Copies a piece to a place of its length: a short one by two or four words, which may overlap.
#[inline(always)]
fn copy(from: &[u8], to: &mut [u8]) {
    match from.len() {
        8..=16 => ends::<8>(from, to),
        17..=SHORT => {
            if let (Some(from), Some(to)) = (from.first_chunk::<16>(), to.first_chunk_mut::<16>()) {
                ends::<8>(from, to);
            }
            if let (Some(from), Some(to)) = (from.last_chunk::<16>(), to.last_chunk_mut::<16>()) {
                ends::<8>(from, to);
            }
        }
        4..8 => ends::<4>(from, to),
        2..4 => ends::<2>(from, to),
        1 => ends::<1>(from, to),
        _ => to.copy_from_slice(from),
    }
}

/// Copies the first and the last bytes.
#[inline(always)]
fn ends<const N: usize>(from: &[u8], to: &mut [u8]) {
    if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
        *to = *from;
    }
    if let (Some(from), Some(to)) = (from.last_chunk::<N>(), to.last_chunk_mut::<N>()) {
        *to = *from;
    }
}
