//! The memory that a test has allocated.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with a count per thread.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated, minus those that it has freed.
pub fn bytes() -> i64 {
    BYTES.get()
}

fn count(bytes: i64) {
    // The count does not exist any more while a thread ends.
    _ = BYTES.try_with(|sum| sum.set(sum.get() + bytes));
}

// SAFETY: all calls are forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        unsafe { System.dealloc(place, layout) }
    }
}
