//! Configured values, as the sources of a value read them.

use hashbrown::HashTable;

use diana_policy::key::{Key, Seed};

/// The number of a source, and the bytes that it hashes.
type Reading = (usize, Box<[u8]>);

/// What each configured value means.
pub(crate) struct Meanings<T>(HashTable<(Reading, T)>);

impl<T> Default for Meanings<T> {
    fn default() -> Meanings<T> {
        Meanings(HashTable::new())
    }
}

impl<T: Copy> Meanings<T> {
    /// Adds a value, unless it is known: the first meaning counts.
    pub(crate) fn add(&mut self, source: usize, value: Vec<u8>, meaning: T) {
        if self.find(source, &value).is_none() {
            let rehash = |((source, value), _): &(Reading, T)| hash(*source, value);
            let hash = hash(source, &value);
            self.0.insert_unique(hash, ((source, value.into()), meaning), rehash);
        }
    }

    /// The meaning of a value that the source with this number read.
    pub(crate) fn find(&self, source: usize, value: &[u8]) -> Option<T> {
        let is_it = |(known, _): &(Reading, T)| known.0 == source && *known.1 == *value;
        self.0.find(hash(source, value), is_it).map(|(_, meaning)| *meaning)
    }
}

fn hash(source: usize, value: &[u8]) -> u64 {
    Key::of(&Seed::PUBLIC, source, value).hash
}
