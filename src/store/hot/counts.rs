//! Requests by caller since they were last added to a window.

use super::cut;
use diana_policy::key::Key;

/// Entries, a power of two.
const ENTRIES: usize = 4096;

/// Entries that may be used.
const FULL: usize = ENTRIES / 4 * 3;

/// The entry of one caller. A free entry is all zero.
#[derive(Debug, Clone, Copy, Default)]
struct HotCount {
    hash: u64,
    second_hash: u64,
    count: u32,
    is_hot: bool,
    /// Whether [`Counts::take`] returned it since the latest [`Counts::rewind`].
    is_taken: bool,
}

impl HotCount {
    fn key(&self) -> Key {
        Key { hash: self.hash, second_hash: self.second_hash }
    }

    fn is_free(&self) -> bool {
        self.count == 0 && !self.is_hot
    }
}

/// Counters by caller, in bounded memory.
#[derive(Debug, Default)]
pub struct Counts {
    entries: Vec<HotCount>,
    taken: usize,
    /// The maximum by which a caller's count may be too low.
    pub missed: u64,
    /// The number of all requests.
    pub all: u64,
}

impl Counts {
    /// Memory in bytes.
    pub const BYTES: u64 = (ENTRIES * size_of::<HotCount>()) as u64;

    /// Counts a request. Returns true if the caller is hot.
    #[inline]
    pub fn add(&mut self, key: Key) -> bool {
        self.all += 1;
        if let Some(entry) = self.find(key.hash) {
            entry.count = entry.count.saturating_add(1);
            return entry.is_hot;
        }
        self.add_new(key);
        false
    }

    /// Returns true if a caller is hot.
    #[inline]
    pub fn is_hot(&mut self, hash: u64) -> bool {
        self.find(hash).is_some_and(|entry| entry.is_hot)
    }

    /// Marks all callers as not taken.
    pub fn rewind(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.is_taken = false);
    }

    /// Marks a caller as taken. Returns its requests.
    pub fn take(&mut self, hash: u64) -> u64 {
        self.find(hash).map_or(0, |entry| {
            entry.is_taken = true;
            u64::from(entry.count)
        })
    }

    /// Callers with requests that were not taken, and their requests.
    pub fn rest(&self) -> impl Iterator<Item = (Key, u64)> {
        let rest = |entry: &&HotCount| entry.count > 0 && !entry.is_taken;
        self.entries.iter().filter(rest).map(|entry| (entry.key(), u64::from(entry.count)))
    }

    /// Clears all counts, and marks these callers as hot.
    pub fn renew(&mut self, hot: impl Iterator<Item = Key>) {
        *self = Counts::default();
        for Key { hash, second_hash } in hot.take(FULL / 3) {
            self.put(HotCount { hash, second_hash, is_hot: true, ..HotCount::default() });
        }
    }

    #[inline(never)]
    fn find(&mut self, hash: u64) -> Option<&mut HotCount> {
        let at = self.position(hash);
        self.entries.get_mut(at).filter(|entry| !entry.is_free())
    }

    /// The index of a caller's entry, or of the free entry for it.
    fn position(&self, hash: u64) -> usize {
        let mut at = hash as usize % ENTRIES;
        while self.entries.get(at).is_some_and(|entry| !entry.is_free() && entry.hash != hash) {
            at = (at + 1) % ENTRIES;
        }
        at
    }

    #[inline(never)]
    fn add_new(&mut self, Key { hash, second_hash }: Key) {
        self.put(HotCount { hash, second_hash, count: 1, ..HotCount::default() });
        if self.taken > FULL {
            self.make_room();
        }
    }

    #[inline(never)]
    fn put(&mut self, entry: HotCount) {
        if self.entries.is_empty() {
            self.entries.resize(ENTRIES, HotCount::default());
        }
        let at = self.position(entry.hash);
        if let Some(free) = self.entries.get_mut(at) {
            *free = entry;
            self.taken += 1;
        }
    }

    /// Makes room: lowers all counts, except those of hot callers, so that half of them become
    /// free.
    #[cold]
    fn make_room(&mut self) {
        let cold = |entry: &&HotCount| !entry.is_free() && !entry.is_hot;
        let above = |least: u64| {
            let cold = self.entries.iter().filter(cold);
            cold.filter(|entry| u64::from(entry.count) > least).count()
        };
        let least = cut(above(0) / 2, &above);
        self.missed += least;
        self.taken = 0;
        for mut entry in std::mem::take(&mut self.entries) {
            if !entry.is_hot {
                entry.count = (u64::from(entry.count).saturating_sub(least)) as u32;
            }
            if !entry.is_free() {
                self.put(entry);
            }
        }
    }
}
