//! What lives as long as the VM, which has one thread. A `thread_local` would be asked each time where it is.

#![allow(unsafe_code)]

use std::ops::Deref;

/// A value that only the thread of the VM reaches, and that is never dropped.
pub(super) struct OneThread<T>(T);

// SAFETY: the host runs a VM in one thread, and the module starts none.
unsafe impl<T> Sync for OneThread<T> {}

impl<T> OneThread<T> {
    pub(super) const fn new(value: T) -> OneThread<T> {
        OneThread(value)
    }
}

impl<T> Deref for OneThread<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
