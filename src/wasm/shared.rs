//! Data that all workers of the gateway share.

use super::abi;
use diana_core::port::SharedData;

/// A number that no value ever has: written with it, a value is only ever inserted.
const INSERT: u32 = u32::MAX;

/// The data that all workers of this gateway share.
pub(super) struct HostSharedData;

impl SharedData for HostSharedData {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        abi::shared_data(key)
    }

    fn swap(&self, key: &str, value: &[u8], number: Option<u32>) -> bool {
        abi::set_shared_data(key, value, number.unwrap_or(INSERT))
    }
}
