//! Requests by caller in a sliding window of slices, as rows of words, in a worker's memory or in
//! shared data.

use super::counts::Counts;
use diana_policy::key::Key;
use diana_policy::ring::Ring;
use diana_policy::time::Micros;

/// Slices in `per`. The window also holds the current slice.
pub const SLICES: u64 = 5;

const RING: Ring = Ring::new(SLICES as usize + 1);

/// Words of a row: both halves of a caller's key, and its ring.
const WORDS: usize = 6;

/// The second half of the key in the first row, to identify the format. Earlier versions have other
/// numbers there.
const FORM: u64 = 1 << 63;

type WindowRow = [u64; WORDS];

/// Callers in a window.
const ROWS: usize = 2048;

/// The counts of all slices of one rule.
#[derive(Debug, Default)]
pub struct HotWindow {
    /// In place of the hash: the length of the window in ticks, and the number of hot callers. The
    /// ring: the maximum by which a caller's count may be too low.
    missed: WindowRow,
    /// In place of the hash: the slice of the latest log line. The ring: all requests.
    all: WindowRow,
    rows: Vec<WindowRow>,
}

impl HotWindow {
    /// Memory in bytes.
    pub const BYTES: u64 = ((ROWS + 2) * size_of::<WindowRow>()) as u64;

    /// Reads a window of `per` ticks. Returns an empty window if the bytes are not one. It must not
    /// lie ahead of `slice`, or it would never expire.
    pub fn read(bytes: &[u8], per: Micros, slice: u64) -> HotWindow {
        let mut window =
            HotWindow { missed: [per << 32, FORM, 0, 0, 0, 0], ..HotWindow::default() };
        let rows = bytes.as_chunks::<{ size_of::<WindowRow>() }>();
        if !rows.1.is_empty() || rows.0.len() > ROWS + 2 {
            return window;
        }
        for (number, bytes) in rows.0.iter().enumerate() {
            let mut row = [0; WORDS];
            for (word, bytes) in row.iter_mut().zip(bytes.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            let is_ours = number > 0 || row[0] >> 32 == per && row[1] == FORM;
            if !is_ours || RING.newest(ring(&row)) > slice.saturating_add(1) {
                // The gauge still includes the hot callers of the previous window.
                window = HotWindow::read(&[], per, slice);
                window.missed[0] |= if is_ours { 0 } else { row[0] & u64::from(u32::MAX) };
                return window;
            }
            match number {
                0 => window.missed = row,
                1 => window.all = row,
                _ => window.rows.push(row),
            }
        }
        window
    }

    /// The newest slice with a count.
    pub fn newest(&self) -> u64 {
        RING.newest(ring(&self.all))
    }

    /// The bytes for [`HotWindow::read`].
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity((self.rows.len() + 2) * size_of::<WindowRow>());
        write(&self.missed, &mut bytes);
        write(&self.all, &mut bytes);
        self.rows.iter().for_each(|row| write(row, &mut bytes));
        bytes
    }

    /// Adds counts in a slice.
    pub fn add(&mut self, counts: &mut Counts, slice: u64) {
        add(&mut self.missed, slice, counts.missed);
        add(&mut self.all, slice, counts.all);
        counts.rewind();
        for row in &mut self.rows {
            add(row, slice, counts.take(row[0]));
        }
        self.lower(0, slice);
        for (key, count) in counts.rest() {
            let mut row = [key.hash, key.second_hash, 0, 0, 0, 0];
            add(&mut row, slice, count);
            self.rows.push(row);
        }
        if self.rows.len() > ROWS {
            // Keeps only as many callers as fit.
            let least = super::cut(ROWS, &|least| self.hot(least, slice).count());
            add(&mut self.missed, slice, least);
            self.lower(least, slice);
        }
        self.rows.shrink_to(ROWS);
    }

    /// Lowers all counts, starting with the oldest slice, and drops those that become zero.
    fn lower(&mut self, least: u64, slice: u64) {
        self.rows.retain_mut(|row| {
            let mut left = least;
            for old in RING.slices(slice) {
                let some = RING.count(ring(row), old).min(left);
                RING.take(&mut row[2..], old, some);
                left -= some;
            }
            sum(row, slice) > 0
        });
    }

    /// Callers with more than `over` requests, and their counts.
    pub fn hot(&self, over: u64, slice: u64) -> impl Iterator<Item = (u64, Key)> {
        let key = |row: &WindowRow| Key { hash: row[0], second_hash: row[1] };
        let counts = self.rows.iter().map(move |row| (sum(row, slice), key(row)));
        counts.filter(move |count| count.0 > over)
    }

    /// Sets the number of hot callers. Returns the previous one.
    pub fn set_hot(&mut self, count: u64) -> u64 {
        let before = self.missed[0] & u64::from(u32::MAX);
        self.missed[0] = self.missed[0] - before + count;
        before
    }

    /// Returns true if a log line is due, at most once per window.
    pub fn is_line_due(&mut self, slice: u64) -> bool {
        let reported = self.all[0];
        let due = reported > slice || slice - reported >= SLICES;
        if due {
            self.all[0] = slice;
        }
        due
    }

    /// The number of all requests, and the maximum by which a caller's count may be too low.
    pub fn totals(&self, slice: u64) -> (u64, u64) {
        (sum(&self.all, slice), sum(&self.missed, slice))
    }
}

fn ring(row: &WindowRow) -> &[u64] {
    &row[2..]
}

#[inline(never)]
fn add(row: &mut WindowRow, slice: u64, count: u64) {
    RING.add(&mut row[2..], slice, count);
}

#[inline(never)]
fn write(row: &WindowRow, bytes: &mut Vec<u8>) {
    row.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
}

#[inline(never)]
fn sum(row: &WindowRow, slice: u64) -> u64 {
    RING.sum(ring(row), slice)
}
