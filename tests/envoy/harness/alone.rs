//! Tests that measure, with no other test beside them: an Envoy that starts keeps a processor busy.

use std::cell::RefCell;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::new(());

thread_local! {
    /// Each test has a thread of its own, and keeps what it has of the machine until that ends.
    static SHARE: RefCell<Option<RwLockReadGuard<'static, ()>>> = const { RefCell::new(None) };
    static WHOLE: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Waits until this test is the only one that uses an Envoy, which it is to its end.
pub fn alone() {
    // Two tests that wait for each other to give up their share would wait for ever.
    SHARE.take();
    if !WHOLE.with_borrow(Option::is_some) {
        WHOLE.set(Some(MACHINE.write().unwrap_or_else(PoisonError::into_inner)));
    }
}

/// Waits while another test is alone.
pub fn not_alone() {
    if !WHOLE.with_borrow(Option::is_some) && !SHARE.with_borrow(Option::is_some) {
        SHARE.set(Some(MACHINE.read().unwrap_or_else(PoisonError::into_inner)));
    }
}
