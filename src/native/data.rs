//! Data that all workers of the process share.

use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard};

use diana_policy::port::SharedData;
use hashbrown::{DefaultHashBuilder, HashTable};

/// Workers that use different keys rarely wait for each other.
const SHARDS: usize = 64;

/// A value grows by this number of bytes, which one more caller takes, without being moved.
const ROOM: usize = 80;

struct ProcessValue {
    key: Box<str>,
    bytes: Vec<u8>,
    /// How often the value was written.
    number: u32,
}

#[derive(Default)]
struct ValuesPart(HashTable<ProcessValue>);

/// The data that all workers of the process share.
pub(crate) struct ProcessValues {
    hasher: DefaultHashBuilder,
    shards: [Mutex<ValuesPart>; SHARDS],
}

impl Default for ProcessValues {
    fn default() -> ProcessValues {
        let shards = std::array::from_fn(|_| Mutex::default());
        ProcessValues { hasher: DefaultHashBuilder::default(), shards }
    }
}

impl ProcessValues {
    fn shard(&self, hash: u64) -> Option<MutexGuard<'_, ValuesPart>> {
        // The table uses the highest and the lowest bits.
        let shard = self.shards.get((hash >> 32) as usize % SHARDS)?;
        Some(shard.lock().unwrap_or_else(|poisoned| {
            // A value may be half written. Usage is lost, so at most one further limit is admitted.
            shard.clear_poison();
            let mut guard = poisoned.into_inner();
            guard.0.clear();
            guard
        }))
    }
}

impl SharedData for &'static ProcessValues {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        let hash = self.hasher.hash_one(key);
        let shard = self.shard(hash)?;
        let found = shard.0.find(hash, |value| *value.key == *key)?;
        let mut copy = Vec::with_capacity(found.bytes.len() + ROOM);
        copy.extend_from_slice(&found.bytes);
        Some((copy, found.number))
    }

    fn swap(&self, key: &str, bytes: &[u8], number: Option<u32>) -> bool {
        let hash = self.hasher.hash_one(key);
        let Some(mut shard) = self.shard(hash) else { return false };
        let Some(found) = shard.0.find_mut(hash, |value| *value.key == *key) else {
            let value = ProcessValue { key: key.into(), bytes: bytes.into(), number: 1 };
            shard.0.insert_unique(hash, value, |value| self.hasher.hash_one(&*value.key));
            return true;
        };
        let fits = number == Some(found.number);
        if fits {
            found.bytes.clear();
            found.bytes.extend_from_slice(bytes);
            found.number = found.number.wrapping_add(1);
        }
        fits
    }
}
