//! A host that only judges: a clock that stands where it is put, and the memory of a gateway.

use std::cell::RefCell;
use std::hash::BuildHasher;

use diana_policy::port::{Call, Callout, Clock, SharedData};
use diana_policy::time::Now;
use hashbrown::{DefaultHashBuilder, HashTable};

/// A clock that stands.
#[derive(Debug, Clone, Copy)]
pub struct Still(pub Now);

impl Clock for Still {
    fn now(&self) -> Now {
        self.0
    }
}

/// Nobody is called.
pub struct Nobody;

impl Callout for Nobody {
    fn send(&self, _: &Call) -> Result<u32, &'static str> {
        Err("nobody is called")
    }

    fn caller(&self) -> u32 {
        0
    }
}

/// Shared data, where nobody else writes meanwhile.
#[derive(Default)]
pub struct Data {
    hasher: DefaultHashBuilder,
    values: RefCell<HashTable<Value>>,
}

/// Bytes by which a value may grow without being moved: one more caller.
const ROOM: usize = 80;

/// A value behind its name, so that whoever compares the name has fetched the value from memory, too: every request
/// asks for values of other callers than the one before, and waits for memory more than for anything else.
struct Value {
    text: Vec<u8>,
    /// Bytes of the name.
    name: u32,
    /// How often it was written.
    number: u32,
}

impl Value {
    fn new(name: &str, bytes: &[u8]) -> Value {
        Value { text: [name.as_bytes(), bytes].concat(), name: name.len() as u32, number: 1 }
    }

    fn parts(&self) -> (&[u8], &[u8]) {
        self.text.split_at_checked(self.name as usize).unwrap_or_default()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.text.truncate(self.name as usize);
        self.text.extend_from_slice(bytes);
        self.number = self.number.wrapping_add(1);
    }
}

impl Data {
    fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.hash_one(name)
    }
}

impl SharedData for Data {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        let key = key.as_bytes();
        let values = self.values.borrow();
        let found = values.find(self.hash(key), |value| value.parts().0 == key)?;
        let bytes = found.parts().1;
        let mut copy = Vec::with_capacity(bytes.len() + ROOM);
        copy.extend_from_slice(bytes);
        Some((copy, found.number))
    }

    fn swap(&self, key: &str, bytes: &[u8], number: Option<u32>) -> bool {
        let name = key.as_bytes();
        let hash = self.hash(name);
        let mut values = self.values.borrow_mut();
        let Some(known) = values.find_mut(hash, |value| value.parts().0 == name) else {
            let rehash = |value: &Value| self.hash(value.parts().0);
            values.insert_unique(hash, Value::new(key, bytes), rehash);
            return true;
        };
        let fits = number == Some(known.number);
        if fits {
            known.write(bytes);
        }
        fits
    }
}
