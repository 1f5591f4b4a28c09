//! How much memory a test has allocated.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, and how much each thread has of it.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated, less those that it has freed.
pub fn bytes() -> i64 {
    BYTES.get()
}

fn count(bytes: i64) {
    // A thread that ends frees more than this.
    _ = BYTES.try_with(|sum| sum.set(sum.get() + bytes));
}

// SAFETY: the system's allocator does the work.
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
