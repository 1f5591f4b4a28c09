//! The host's metrics.

#![allow(unsafe_code)]

use super::OK;

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn proxy_define_metric(kind: u32, name: *const u8, size: usize, id: *mut u32) -> u32;
    fn proxy_increment_metric(id: u32, change: i64) -> u32;
    fn proxy_record_metric(id: u32, value: u64) -> u32;
    fn proxy_get_metric(id: u32, value: *mut u64) -> u32;
}

/// The id of a metric: kind 0 is a counter, 1 a gauge, 2 a histogram.
pub(crate) fn define(kind: u32, name: &str) -> Option<u32> {
    let mut id = 0;
    // SAFETY: the name is valid, and so is the place for the id.
    let status = unsafe { proxy_define_metric(kind, name.as_ptr(), name.len(), &raw mut id) };
    (status == OK).then_some(id)
}

pub(crate) fn increment(id: u32, change: i64) {
    // SAFETY: no memory is involved. A metric that cannot be counted is no reason to disturb a request.
    _ = unsafe { proxy_increment_metric(id, change) };
}

pub(crate) fn record(id: u32, value: u64) {
    // SAFETY: no memory is involved.
    _ = unsafe { proxy_record_metric(id, value) };
}

/// What a metric shows.
pub(crate) fn value(id: u32) -> Option<u64> {
    let mut value = 0;
    // SAFETY: the place for the value is valid.
    let status = unsafe { proxy_get_metric(id, &raw mut value) };
    (status == OK).then_some(value)
}
