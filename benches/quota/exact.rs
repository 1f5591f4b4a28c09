//! The same in a table that keeps a hash and a count of every account.

use std::hint::black_box;
use std::time::Instant;

use hashbrown::HashTable;

use super::allocator;
use super::day::{key, shuffled};

/// What was seen.
pub struct Table {
    /// Per account.
    pub bytes: f64,
    /// For a check and its charge.
    pub nanoseconds: f64,
}

pub fn measure(accounts: u64, permits: u64) -> Table {
    let empty = allocator::bytes();
    let mut table: HashTable<(u64, u64)> = HashTable::new();
    let mut time = f64::MAX;
    for round in 0..=permits {
        let start = Instant::now();
        for place in 0..accounts {
            let hash = key(shuffled(place, round, accounts)).hash;
            let entry = table.entry(hash, |row| row.0 == hash, |row| row.0);
            let used = &mut entry.or_insert((hash, 0)).into_mut().1;
            *used += u64::from(black_box(*used < permits));
        }
        time = time.min(start.elapsed().as_nanos() as f64);
    }
    Table {
        bytes: (allocator::bytes() - empty) as f64 / accounts as f64,
        nanoseconds: time / accounts as f64,
    }
}
