//! Data that all workers of the gateway share.

use std::cell::Cell;

use super::abi;
use super::one_thread::OneThread;
use diana_core::port::SharedData;

/// A CAS number that no value ever has: written with it, a value is only ever inserted.
const INSERT: u32 = u32::MAX;

/// The host numbers all writes of all values in turn, from 1 on. It does not tell the number of a write, so this worker counts
/// its own, and reads the number of one of so many.
const PROVED: u32 = 64;

/// The number of its last write unless others write, too, and how many it has counted since it has read one.
static LAST: OneThread<Cell<(u32, u32)>> = OneThread::new(Cell::new((0, PROVED)));

/// The data that all workers of this gateway share.
pub(super) struct HostSharedData;

impl SharedData for HostSharedData {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        abi::shared_data(key)
    }

    fn swap(&self, key: &str, value: &[u8], number: Option<u32>) -> bool {
        let written = abi::set_shared_data(key, value, number.unwrap_or(INSERT));
        if written {
            let (last, counted) = LAST.get();
            LAST.set((last.checked_add(1).unwrap_or(1), counted.saturating_add(1)));
        }
        written
    }

    fn last_number(&self, key: &str) -> Option<u32> {
        let (mut last, mut counted) = LAST.get();
        if counted >= PROVED {
            (last, counted) = (abi::shared_data(key)?.1, 0);
            LAST.set((last, counted));
        }
        (last != INSERT).then_some(last)
    }
}
