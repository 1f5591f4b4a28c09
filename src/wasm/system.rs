//! What the C library of the target and WASI give: the beginning, clocks and random bits.

#![allow(unsafe_code)]

use diana_core::time::Micros;
use wasi::wasi_snapshot_preview1::clock_time_get;

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
    const PRECISION: i64 = 1000;
    let mut nanos: u64 = 0;
    // SAFETY: the number is where the call is told to write it.
    let status = unsafe {
        // By its wrapper the call takes a quarter more of what is not the host's.
        clock_time_get(id.raw() as i32, PRECISION, (&raw mut nanos) as usize as i32)
    };
    if status == 0 { nanos / 1000 } else { 0 }
}

/// Sixteen random bytes, or nothing if the host has none.
pub(super) fn random() -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    // SAFETY: the buffer is as long as said.
    unsafe { wasi::random_get(bytes.as_mut_ptr(), bytes.len()) }.ok()?;
    Some(bytes)
}
