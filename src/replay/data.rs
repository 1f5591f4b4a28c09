//! Shared data in memory.

use std::cell::RefCell;
use std::hash::BuildHasher;

use diana_policy::port::SharedData;
use hashbrown::{DefaultHashBuilder, HashTable};

/// Shared data that only the replay writes.
#[derive(Default)]
pub(crate) struct MemoryData {
    hasher: DefaultHashBuilder,
    values: RefCell<HashTable<SharedValue>>,
}

/// A value grows by this number of bytes, which one more caller takes, without being moved.
const ROOM: usize = 80;

/// A name and its value in one block. Each request reads values of other callers than the request
/// before, so most reads miss the processor's cache, and with one block a read misses once.
struct SharedValue {
    text: Vec<u8>,
    /// Length of the name in bytes.
    name: u32,
    /// How often the value was written.
    number: u32,
}

impl SharedValue {
    fn new(name: &str, bytes: &[u8]) -> SharedValue {
        SharedValue { text: [name.as_bytes(), bytes].concat(), name: name.len() as u32, number: 1 }
    }

    fn split(&self) -> (&[u8], &[u8]) {
        self.text.split_at_checked(self.name as usize).unwrap_or_default()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.text.truncate(self.name as usize);
        self.text.extend_from_slice(bytes);
        self.number = self.number.wrapping_add(1);
    }
}

impl MemoryData {
    fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.hash_one(name)
    }
}

impl SharedData for MemoryData {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        let key = key.as_bytes();
        let values = self.values.borrow();
        let found = values.find(self.hash(key), |value| value.split().0 == key)?;
        let bytes = found.split().1;
        let mut copy = Vec::with_capacity(bytes.len() + ROOM);
        copy.extend_from_slice(bytes);
        Some((copy, found.number))
    }

    fn swap(&self, key: &str, bytes: &[u8], number: Option<u32>) -> bool {
        let name = key.as_bytes();
        let hash = self.hash(name);
        let mut values = self.values.borrow_mut();
        let Some(known) = values.find_mut(hash, |value| value.split().0 == name) else {
            let rehash = |value: &SharedValue| self.hash(value.split().0);
            values.insert_unique(hash, SharedValue::new(key, bytes), rehash);
            return true;
        };
        let fits = number == Some(known.number);
        if fits {
            known.write(bytes);
        }
        fits
    }
}
