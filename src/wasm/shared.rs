//! Data that all workers of the gateway share.

use diana_policy::port::SharedData;
use proxy_wasm::hostcalls;

/// A version that no value has. A write with this version only inserts.
const INSERT: u32 = u32::MAX;

/// The data that all workers of this gateway share.
pub(super) struct HostSharedData;

impl SharedData for HostSharedData {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        let (value, number) = hostcalls::get_shared_data(key).ok()?;
        // An empty value has a version, too.
        Some((value.unwrap_or_default(), number?))
    }

    fn swap(&self, key: &str, value: &[u8], number: Option<u32>) -> bool {
        hostcalls::set_shared_data(key, Some(value), number.or(Some(INSERT))).is_ok()
    }
}
