//! Locks of workers that are coroutines of one thread, in tests that try every order in which they take them.

use std::cell::RefCell;
use std::ptr;
use std::rc::Rc;
use std::sync::{Mutex, TryLockError};

/// Runs before a worker takes the lock at an address. The lock must be free when this returns.
pub type BeforeLock = Rc<dyn Fn(usize, &dyn Fn() -> bool)>;

thread_local! {
    static WAIT: RefCell<Option<BeforeLock>> = const { RefCell::new(None) };
}

/// Sets the function for the workers of this thread. Without one they lock at once.
pub fn set(wait: Option<BeforeLock>) {
    WAIT.set(wait);
}

/// Waits until a lock is free.
pub(crate) fn wait<T>(lock: &Mutex<T>) {
    if let Some(wait) = WAIT.with_borrow(Clone::clone) {
        let is_free = || !matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
        wait(ptr::from_ref(lock).addr(), &is_free);
    }
}
