//! Charges of requests that have ended, until the limiter settles or cancels them.

use std::cell::Cell;

use super::OpenCharge;

/// The maximum number of charges of open streams with settlement: 20 MB, at 80 bytes each.
const MOST: usize = 250_000;

/// Charges of requests that have ended, until the limiter settles or cancels them.
#[derive(Default)]
pub struct CancelQueue {
    any: Cell<bool>,
    all: Cell<Vec<OpenCharge>>,
    /// Charges of open streams that will be settled.
    open: Cell<usize>,
}

impl CancelQueue {
    /// Returns true if there is no memory for another charge of an open stream.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.open.get() >= MOST
    }

    /// Returns true if an open stream has a charge to settle.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.open.get() > 0
    }

    /// Counts another open charge.
    pub(super) fn open(&self) {
        self.open.set(self.open.get() + 1);
    }

    /// Counts the end of an open charge.
    pub(super) fn close(&self) {
        self.open.set(self.open.get().saturating_sub(1));
    }

    /// Returns true if there are charges.
    #[must_use]
    #[inline]
    pub fn is_any(&self) -> bool {
        self.any.get()
    }

    /// Removes all charges, oldest first.
    #[must_use]
    pub fn take(&self) -> Vec<OpenCharge> {
        self.any.set(false);
        self.all.take()
    }

    /// Adds a charge.
    pub fn add(&self, charge: OpenCharge) {
        let mut all = self.all.take();
        all.push(charge);
        self.all.set(all);
        self.any.set(true);
    }
}
