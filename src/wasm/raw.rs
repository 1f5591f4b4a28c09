//! Host calls that neither the SDK nor the standard library offers in a usable form.

#![allow(unsafe_code)]

use diana_policy::time::Micros;
use proxy_wasm::types::MapType;

const OK: u32 = 0;

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn proxy_get_property(path: *const u8, size: usize, data: *mut *mut u8, len: *mut usize)
    -> u32;
    fn proxy_set_property(path: *const u8, size: usize, data: *const u8, len: usize) -> u32;
    fn proxy_get_header_map_pairs(map: MapType, data: *mut *mut u8, len: *mut usize) -> u32;
    fn proxy_send_local_response(
        status: u32,
        details: *const u8,
        details_len: usize,
        body: *const u8,
        body_len: usize,
        headers: *const u8,
        headers_len: usize,
        grpc_status: i32,
    ) -> u32;
}

/// Makes a call that returns bytes. `None` if the host has none.
fn returned(call: impl FnOnce(*mut *mut u8, *mut usize) -> u32) -> Option<Vec<u8>> {
    let mut data: *mut u8 = std::ptr::null_mut();
    let mut len: usize = 0;
    if call(&raw mut data, &raw mut len) != OK {
        return None;
    }
    if data.is_null() {
        return Some(Vec::new());
    }
    // SAFETY: the host allocated `len` bytes by the SDK's `proxy_on_memory_allocate`, as a boxed
    // slice, and transfers ownership.
    Some(unsafe { Vec::from_raw_parts(data, len, len) })
}

/// A property, by its segments separated by NUL. The SDK does not distinguish an empty value from a
/// missing one.
pub(super) fn property(path: &[u8]) -> Option<Vec<u8>> {
    // SAFETY: the slice is valid, and so are the destinations.
    returned(|data, len| unsafe { proxy_get_property(path.as_ptr(), path.len(), data, len) })
}

/// Sets a property in the filter state. The SDK panics if another filter has made it read-only.
pub(super) fn set_property(path: &str, value: &[u8]) {
    // SAFETY: both slices are valid. An error is ignored, since the property does not affect the
    // request.
    _ = unsafe { proxy_set_property(path.as_ptr(), path.len(), value.as_ptr(), value.len()) };
}

/// All headers in encoded form. The SDK copies every name and value, which takes 900 instructions
/// per header.
pub(super) fn headers(map: MapType) -> Option<Vec<u8>> {
    // SAFETY: the destinations are valid.
    returned(|data, len| unsafe { proxy_get_header_map_pairs(map, data, len) })
}

/// Responds to the request. `headers` are encoded. gRPC clients receive `grpc_status`. The SDK
/// sends either a status or a gRPC status, and no response code details.
pub(super) fn reply(status: u32, details: &str, body: &[u8], headers: &[u8], grpc_status: i32) {
    // SAFETY: all slices are valid. An error cannot be handled.
    _ = unsafe {
        proxy_send_local_response(
            status,
            details.as_ptr(),
            details.len(),
            body.as_ptr(),
            body.len(),
            headers.as_ptr(),
            headers.len(),
            grpc_status,
        )
    };
}

/// The monotonic clock, or zero if the host has none. Workers compare its values, so an `Instant`
/// does not suffice.
pub(super) fn monotonic() -> Micros {
    clock(wasi::CLOCKID_MONOTONIC)
}

/// The wall clock since the Unix epoch, or zero if the host has none.
pub(super) fn wall() -> Micros {
    clock(wasi::CLOCKID_REALTIME)
}

fn clock(id: wasi::Clockid) -> Micros {
    const PRECISION: u64 = 1000;
    // SAFETY: the wrapper passes a valid destination for the time.
    unsafe { wasi::clock_time_get(id, PRECISION) }.map_or(0, |nanos| nanos / 1000)
}

/// Sixteen random bytes, or `None` if the host has none.
pub(super) fn random() -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    // SAFETY: the buffer has this length.
    unsafe { wasi::random_get(bytes.as_mut_ptr(), bytes.len()) }.ok()?;
    Some(bytes)
}
