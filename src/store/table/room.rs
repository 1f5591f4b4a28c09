//! Room for a new caller: a free row, the row of a caller with expired state, or an overflow
//! bucket.

use super::{RowLocation, Table};
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};

/// Rows checked for one new caller when the table is full.
const SCAN: u32 = 512;

impl Table {
    /// The location of a caller without a row.
    #[inline(never)]
    pub(super) fn find_room(&mut self, key: Key, now: Now) -> RowLocation {
        let is_bucket_in_use = || self.state(key, RowLocation::Overflow) != &*self.unused_row;
        if self.algorithm.properties().is_held && is_bucket_in_use() {
            return RowLocation::Overflow;
        }
        if self.index.len() < self.capacity || self.make_room(self.no_earlier(now)) {
            RowLocation::New
        } else {
            RowLocation::Overflow
        }
    }

    /// Drops one caller with expired state, if there is one among the next rows. Returns false if
    /// there is none.
    #[inline(never)]
    fn make_room(&mut self, now: Now) -> bool {
        if self.barren >= self.rows.rows() {
            if now.mono < self.earliest {
                return false;
            }
            self.barren = 0;
        }
        if self.barren == 0 {
            self.earliest = Micros::MAX;
        }
        for _ in 0..SCAN.min(self.rows.rows()) {
            let row = self.cursor;
            self.cursor = if row + 1 < self.rows.rows() { row + 1 } else { 0 };
            self.barren += 1;
            let Some([hash, state @ ..]) = self.rows.get(row) else { continue };
            let expires = self.algorithm.expires(state, now);
            if expires > now.mono {
                self.earliest = self.earliest.min(expires);
                continue;
            }
            let hash = *hash;
            if let Ok(entry) = self.index.find_entry(hash, |&other| other == row) {
                entry.remove();
                self.rows.free(row);
                self.watermark.raise(now);
                self.version = self.version.wrapping_add(1);
                self.barren = 0;
                return true;
            }
        }
        false
    }
}
