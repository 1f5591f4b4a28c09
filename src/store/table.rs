//! A bounded table of callers in this worker's memory.
//!
//! Expired state is dropped first, which loses no usage. When the table is full of live callers,
//! new callers share overflow buckets, chosen by the keyed hash: callers never get a fresh bucket
//! because others came. A new caller that gets a row later starts with the usage of the bucket that
//! it shared, which is at least the caller's.

mod room;

use std::sync::Arc;

use hashbrown::HashTable;

use super::CounterSpec;
use super::slab::Slab;
use super::watermark::Watermark;
use diana_algorithm::{Algorithm, Properties};
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};

/// Buckets shared by new callers while the table is full.
pub const OVERFLOW_BUCKETS: u64 = 1024;

/// The location of a caller's state, valid while [`Table::version`] is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowLocation {
    /// A row.
    Row(u32),
    /// A row is free for it; the caller gets it when it is charged.
    New,
    /// An overflow bucket.
    Overflow,
}

/// The callers of one rule.
#[derive(Debug)]
pub struct Table {
    algorithm: Arc<dyn Algorithm>,
    /// Ticks after which a dropped window has ended by any clock.
    window: Micros,
    capacity: usize,
    index: HashTable<u32>,
    /// Hash and state of each caller.
    rows: Slab,
    /// States of the overflow buckets, once they were needed.
    overflow: Option<Slab>,
    /// A row of zeros, the state of an unknown caller.
    unused_row: Box<[u64]>,
    /// The latest instant at which state was dropped. No decision is made at an earlier one.
    watermark: Watermark,
    /// The next row to check for expired state.
    cursor: u32,
    /// Rows checked since the latest drop, and the earliest expiry among them.
    barren: u32,
    earliest: Micros,
    /// The number of callers at the latest call of [`Table::change`].
    reported: usize,
    /// The number of changes and drafts.
    version: u64,
}

impl Table {
    /// An empty table for at most `capacity` live callers.
    #[must_use]
    pub fn new(algorithm: Arc<dyn Algorithm>, capacity: usize) -> Table {
        let Properties { words, window, .. } = *algorithm.properties();
        Table {
            algorithm,
            window,
            capacity,
            index: HashTable::new(),
            rows: Slab::new(words + 1),
            overflow: None,
            unused_row: vec![0; words].into(),
            watermark: Watermark::default(),
            cursor: 0,
            barren: 0,
            earliest: Micros::MAX,
            reported: 0,
            version: 0,
        }
    }

    /// Continues under a changed configuration. Usage stays, under the new limits. If there are
    /// more callers than the new `capacity`, new callers share buckets until some have expired.
    pub fn adopt(&mut self, algorithm: Arc<dyn Algorithm>, capacity: usize) {
        self.algorithm = algorithm;
        self.capacity = capacity;
        self.version = self.version.wrapping_add(1);
        self.barren = 0;
    }

    /// The same, unless the table has these parameters already.
    #[inline(always)]
    pub fn configure(&mut self, algorithm: &Arc<dyn Algorithm>, capacity: usize) {
        if !Arc::ptr_eq(&self.algorithm, algorithm) || self.capacity != capacity {
            self.adopt(algorithm.clone(), capacity);
        }
    }

    /// The maximum size of a table of `capacity` callers in bytes, for the log.
    #[must_use]
    pub fn bytes(words: usize, capacity: usize) -> u64 {
        // hashbrown keeps seven eighths of a power of two of slots, five bytes each.
        let index = (capacity as u64 * 8 / 7).next_power_of_two() * 5;
        Slab::bytes(words + 1, capacity) + index + Slab::bytes(words, OVERFLOW_BUCKETS as usize)
    }

    /// Drops all callers.
    pub(super) fn empty(&mut self) {
        let (reported, version) = (self.reported, self.version.wrapping_add(1));
        *self = Table { reported, version, ..Table::new(self.algorithm.clone(), self.capacity) };
    }

    /// Returns true if all states have expired.
    pub(super) fn is_expired(&self, now: Now) -> bool {
        let is_expired = |state: &[u64]| self.algorithm.expires(state, now) <= now.mono;
        let state = |row: &u32| self.rows.get(*row).and_then(|row| row.get(1..));
        let mut buckets =
            self.overflow.iter().flat_map(|all| (0..all.rows()).filter_map(|it| all.get(it)));
        self.index.iter().filter_map(state).all(is_expired) && buckets.all(is_expired)
    }

    /// The number of callers with a row.
    #[must_use]
    pub fn callers(&self) -> usize {
        self.index.len()
    }

    /// The change of the number of callers since the last call.
    pub fn change(&mut self) -> i64 {
        let change = self.callers() as i64 - self.reported as i64;
        self.reported = self.callers();
        change
    }

    /// As [`Table::change`], when the table is dropped.
    pub fn withdraw(&mut self) -> i64 {
        -(std::mem::take(&mut self.reported) as i64)
    }

    /// A number that changes with every change, including moves of callers, and with every draft.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Begins the draft of a charge, which the next one replaces. Returns the version.
    pub fn begin_draft(&mut self) -> u64 {
        self.version = self.version.wrapping_add(1);
        self.version
    }

    /// The instant of a decision: `now`, or later if state was dropped later.
    #[must_use]
    #[inline(always)]
    pub fn no_earlier(&self, now: Now) -> Now {
        self.watermark.no_earlier(now, self.window)
    }

    /// Finds the location of a caller, making room if it is new and the table is full.
    #[inline(always)]
    pub fn find(&mut self, key: Key, now: Now) -> RowLocation {
        match self.row(key) {
            Some(row) => RowLocation::Row(row),
            None => self.find_room(key, now),
        }
    }

    /// The row of a caller, if it has one.
    #[inline(always)]
    fn row(&self, key: Key) -> Option<u32> {
        let rows = &self.rows;
        let is_own = |row: &u32| hash(rows, *row) == key.hash;
        // The only row of a rule that counts all callers together.
        if rows.rows() == 1 && !self.index.is_empty() {
            return Some(0).filter(is_own);
        }
        self.index.find(key.hash, is_own).copied()
    }

    /// The state at a location returned by [`Table::find`].
    #[must_use]
    #[inline]
    pub fn state(&self, key: Key, location: RowLocation) -> &[u64] {
        let state = match location {
            RowLocation::Row(row) => self.rows.get(row).and_then(|row| row.get(1..)),
            RowLocation::New | RowLocation::Overflow => {
                self.overflow.as_ref().and_then(|buckets| buckets.get(bucket(key)))
            }
        };
        state.unwrap_or(&self.unused_row)
    }

    /// Exchanges the state at a location returned by [`Table::find`] for `state`. Returns its new
    /// location.
    #[inline(always)]
    pub fn swap(&mut self, key: Key, location: RowLocation, state: &mut [u64]) -> RowLocation {
        self.version = self.version.wrapping_add(1);
        let (location, words) = match location {
            RowLocation::Row(row) => (location, self.row_mut(row)),
            RowLocation::New => {
                let row = self.insert(key);
                (RowLocation::Row(row), self.row_mut(row))
            }
            RowLocation::Overflow => (location, self.bucket_mut(key)),
        };
        words.into_iter().for_each(|words| swap(words, state));
        location
    }

    fn row_mut(&mut self, row: u32) -> Option<&mut [u64]> {
        self.rows.get_mut(row).and_then(|row| row.get_mut(1..))
    }

    #[inline(never)]
    fn insert(&mut self, key: Key) -> u32 {
        let row = self.rows.take();
        if let Some(first) = self.rows.get_mut(row).and_then(|row| row.first_mut()) {
            *first = key.hash;
        }
        let rows = &self.rows;
        self.index.insert_unique(key.hash, row, |&row| hash(rows, row));
        row
    }

    #[inline(never)]
    fn bucket_mut(&mut self, key: Key) -> Option<&mut [u64]> {
        let words = self.unused_row.len();
        let buckets = self.overflow.get_or_insert_with(|| {
            let mut buckets = Slab::new(words);
            (0..OVERFLOW_BUCKETS).for_each(|_| _ = buckets.take());
            buckets
        });
        buckets.get_mut(bucket(key))
    }
}

/// Exchanges two states of equal length.
#[inline(always)]
fn swap(one: &mut [u64], other: &mut [u64]) {
    for (one, other) in one.iter_mut().zip(other) {
        std::mem::swap(one, other);
    }
}

#[inline(always)]
fn hash(rows: &Slab, row: u32) -> u64 {
    rows.get(row).and_then(|row| row.first()).copied().unwrap_or(0)
}

fn bucket(key: Key) -> u32 {
    (key.second_hash % OVERFLOW_BUCKETS) as u32
}

/// Workers that are threads of one process may share a table, its algorithm and its plans.
const _: fn() = || {
    fn is_shareable<T: Send + Sync>() {}
    is_shareable::<(Table, CounterSpec)>();
};
