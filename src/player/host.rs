//! A host that only judges: a clock that stands where it is put, and the memory of a gateway.

use std::cell::RefCell;

use diana_core::port::{Call, Callout, Clock, SharedData};
use diana_core::time::Now;
use hashbrown::HashMap;

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
pub struct Data(RefCell<HashMap<String, (Vec<u8>, u32)>>);

impl SharedData for Data {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        self.0.borrow().get(key).cloned()
    }

    fn swap(&self, key: &str, value: &[u8], number: Option<u32>) -> bool {
        let mut values = self.0.borrow_mut();
        let Some((known, version)) = values.get_mut(key) else {
            values.insert(key.into(), (value.into(), 1));
            return true;
        };
        let fits = number == Some(*version);
        if fits {
            known.clear();
            known.extend_from_slice(value);
            *version = version.wrapping_add(1);
        }
        fits
    }
}
