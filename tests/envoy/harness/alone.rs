//! Tests that measure, with no other test beside them: an Envoy that starts keeps a processor busy.

use std::cell::RefCell;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::times::Time;

static MACHINE: RwLock<()> = RwLock::new(());

thread_local! {
    /// Each test has a thread of its own, and keeps what it has of the machine until that ends.
    static SHARE: RefCell<Option<Had<RwLockReadGuard<'static, ()>>>> = const { RefCell::new(None) };
    static WHOLE: RefCell<Option<Had<RwLockWriteGuard<'static, ()>>>> = const { RefCell::new(None) };
}

/// What a test has of the machine, and since when.
struct Had<T> {
    // Ends before another test begins.
    _time: Time,
    _guard: T,
}

impl<T> Had<T> {
    fn from_now_on(guard: T) -> Option<Had<T>> {
        Some(Had { _time: Time::begin(), _guard: guard })
    }
}

/// Waits until this test is the only one that uses an Envoy, which it is to its end.
pub fn alone() {
    // Two tests that wait for each other to give up their share would wait for ever.
    SHARE.take();
    if !WHOLE.with_borrow(Option::is_some) {
        WHOLE.set(Had::from_now_on(MACHINE.write().unwrap_or_else(PoisonError::into_inner)));
    }
}

/// Waits while another test is alone.
pub fn not_alone() {
    if !WHOLE.with_borrow(Option::is_some) && !SHARE.with_borrow(Option::is_some) {
        SHARE.set(Had::from_now_on(MACHINE.read().unwrap_or_else(PoisonError::into_inner)));
    }
}
