//! Data that all workers of the gateway share.

use std::cell::Cell;

use super::abi;
use super::one_thread::OneThread;
use diana_core::port::SharedData;
use diana_worker::numbers::{INSERT, Numbers};

static NUMBERS: OneThread<Cell<Numbers>> = OneThread::new(Cell::new(Numbers::UNKNOWN));

/// The data that all workers of this gateway share.
pub(super) struct HostSharedData;

impl SharedData for HostSharedData {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        abi::shared_data(key)
    }

    fn swap(&self, key: &str, value: &[u8], number: Option<u32>) -> bool {
        let written = abi::set_shared_data(key, value, number.unwrap_or(INSERT));
        if written {
            let mut numbers = NUMBERS.get();
            numbers.wrote();
            NUMBERS.set(numbers);
        }
        written
    }

    fn last_number(&self, key: &str, value: &[u8]) -> Option<u32> {
        let mut numbers = NUMBERS.get();
        let last = numbers.last(value, || self.get(key));
        NUMBERS.set(numbers);
        last
    }
}
