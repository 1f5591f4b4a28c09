//! The same measurement of a table with a hash and a count of every account.

use std::hint::black_box;

use hashbrown::HashTable;

use super::day::{key, median_of_batches};

/// The results.
pub struct Table {
    /// Per account.
    pub bytes: f64,
    /// For a check and its charge.
    pub nanoseconds: f64,
}

pub fn measure(accounts: u64, permits: u64) -> Table {
    let empty = allocator::bytes();
    let mut table: HashTable<(u64, u64)> = HashTable::new();
    let nanoseconds = median_of_batches(accounts, permits, |account| {
        let hash = key(account).hash;
        let entry = table.entry(hash, |row| row.0 == hash, |row| row.0);
        let used = &mut entry.or_insert((hash, 0)).into_mut().1;
        *used += u64::from(black_box(*used < permits));
    });
    Table { bytes: (allocator::bytes() - empty) as f64 / accounts as f64, nanoseconds }
}
