//! Requests by caller in a window that slides by slices, as rows of words: in a worker's memory, or
//! in shared data.

use super::counts::Counts;
use crate::ring::Ring;
use crate::time::Micros;

/// Slices in `per`. The window holds them and the one that has begun.
pub const SLICES: u64 = 5;

const RING: Ring = Ring::new(SLICES as usize + 1);

/// Words of a row: a caller's hash, and his ring.
const WORDS: usize = 5;

type Row = [u64; WORDS];

/// Callers in a window.
const ROWS: usize = 2048;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// In the place of a hash: how long it is in ticks, and how many callers are hot. The ring: by how
    /// much any caller's count may be too low.
    missed: Row,
    /// In the place of a hash: the slice in which they were last told of. The ring: all requests.
    all: Row,
    rows: Vec<Row>,
}

impl Window {
    /// Bytes that it takes.
    pub const BYTES: u64 = ((ROWS + 2) * size_of::<Row>()) as u64;

    /// The window of so many ticks that was written; an empty one if it was not. What stands in for it
    /// may not lie ahead of `slice`, or it would stay.
    #[inline(never)]
    pub fn read(bytes: &[u8], per: Micros, slice: u64) -> Window {
        let words: Vec<u64> =
            bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let is_ours = |row: &Row| RING.newest(ring(row)) <= slice + 1;
        match words.as_chunks() {
            ([missed, all, rows @ ..], [])
                if missed[0] >> 32 == per
                    && rows.len() <= ROWS
                    && [missed, all].into_iter().chain(rows).all(is_ours) =>
            {
                Window { missed: *missed, all: *all, rows: rows.to_vec() }
            }
            _ => Window { missed: [per << 32, 0, 0, 0, 0], ..Window::default() },
        }
    }

    /// The bytes to be read.
    pub fn bytes(&self) -> Vec<u8> {
        let rows = [self.missed, self.all];
        let mut bytes = Vec::with_capacity((self.rows.len() + 2) * size_of::<Row>());
        for word in rows.iter().chain(&self.rows).flatten() {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Adds what was counted, in a slice.
    pub fn add(&mut self, mut counts: Counts, slice: u64) {
        RING.add(&mut self.missed[1..], slice, counts.missed);
        RING.add(&mut self.all[1..], slice, counts.all);
        for row in &mut self.rows {
            let count = counts.take(row[0]);
            if count > 0 {
                RING.add(&mut row[1..], slice, u64::from(count));
            }
        }
        self.rows.retain(|row| sum(row, slice) > 0);
        for (hash, count) in counts.all() {
            let mut row = [hash, 0, 0, 0, 0];
            RING.add(&mut row[1..], slice, u64::from(count));
            self.rows.push(row);
        }
        if self.rows.len() > ROWS {
            self.thin(slice);
        }
    }

    /// Makes room: lowers all counts such that only as many stay as there is room for.
    #[cold]
    fn thin(&mut self, slice: u64) {
        let counts: Vec<u64> = self.rows.iter().map(|row| sum(row, slice)).collect();
        let least = super::cut(&counts, ROWS);
        RING.add(&mut self.missed[1..], slice, least);
        self.rows.retain_mut(|row| {
            let mut left = least;
            for old in RING.slices(slice) {
                let some = RING.count(ring(row), old).min(left);
                RING.take(&mut row[1..], old, some);
                left -= some;
            }
            sum(row, slice) > 0
        });
    }

    /// Callers who came more than `over` times.
    pub fn hot(&self, over: u64, slice: u64) -> impl Iterator<Item = u64> {
        self.rows.iter().filter(move |row| sum(row, slice) > over).map(|row| row[0])
    }

    /// The `most` hottest of them with their counts, those first who came most.
    pub fn top(&self, over: u64, slice: u64, most: usize) -> Vec<(u64, u64)> {
        let mut top = Vec::new();
        let mut last = (u64::MAX, u64::MAX);
        while top.len() < most {
            let callers = self.rows.iter().map(|row| (sum(row, slice), row[0]));
            let next = callers.filter(|next| next.0 > over && *next < last).max();
            let Some(next) = next else { break };
            top.push((next.1, next.0));
            last = next;
        }
        top
    }

    /// Notes how many callers are hot. How many there were.
    pub fn set_hot(&mut self, count: u64) -> u64 {
        let before = self.missed[0] & u64::from(u32::MAX);
        self.missed[0] = self.missed[0] - before + count;
        before
    }

    /// Whether it is time to tell of them; then it is not for as long as the window is.
    pub fn tell(&mut self, slice: u64) -> bool {
        let told = self.all[0];
        let due = told > slice || slice - told >= SLICES;
        if due {
            self.all[0] = slice;
        }
        due
    }

    /// All requests, and by how much any caller's count may be too low.
    pub fn totals(&self, slice: u64) -> (u64, u64) {
        (sum(&self.all, slice), sum(&self.missed, slice))
    }
}

fn ring(row: &Row) -> &[u64] {
    &row[1..]
}

#[inline(never)]
fn sum(row: &Row, slice: u64) -> u64 {
    RING.sum(ring(row), slice)
}
