//! Bounds on memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static BYTES: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

// SAFETY: all calls are forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = BYTES.fetch_add(layout.size(), Relaxed).wrapping_add(layout.size());
        MOST.fetch_max(bytes, Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Calls a function that must never allocate more than `most` bytes in total.
pub fn to<T>(most: usize, something: impl FnOnce() -> T) -> T {
    let before = BYTES.load(Relaxed);
    MOST.store(before, Relaxed);
    let done = something();
    let taken = MOST.load(Relaxed) - before;
    assert!(taken <= most, "{taken} bytes were taken, {most} allowed");
    done
}
