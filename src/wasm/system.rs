//! What the C library of the target and WASI give: the beginning, clocks and random bits.

#![allow(unsafe_code)]

use diana_core::time::Micros;

unsafe extern "C" {
    fn __wasm_call_ctors();
}

/// Readies the C library. To be called once, before anything else.
pub(super) fn initialize() {
    // SAFETY: the linker made it for this.
    unsafe { __wasm_call_ctors() };
}

/// The monotonic clock; zero if the host has none.
pub(super) fn monotonic() -> Micros {
    clock(wasi::CLOCKID_MONOTONIC)
}

/// The wall clock since the Unix epoch; zero if the host has none.
pub(super) fn wall() -> Micros {
    clock(wasi::CLOCKID_REALTIME)
}

fn clock(id: wasi::Clockid) -> Micros {
    // SAFETY: no memory is involved.
    unsafe { wasi::clock_time_get(id, 1000) }.map_or(0, |nanos| nanos / 1000)
}

/// Sixteen random bytes, or nothing if the host has none.
pub(super) fn random() -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    // SAFETY: the buffer is as long as said.
    unsafe { wasi::random_get(bytes.as_mut_ptr(), bytes.len()) }.ok()?;
    Some(bytes)
}
