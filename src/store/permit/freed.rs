//! What requests no longer need, until their limiter takes it back.

use std::cell::Cell;

use super::Unsettled;

/// Most charges of open streams that are settled at their end: at 64 bytes each they take 16 MiB.
const MOST: usize = 250_000;

/// What requests no longer need, until their limiter takes it back.
#[derive(Default)]
pub struct Freed {
    any: Cell<bool>,
    all: Cell<Vec<Unsettled>>,
    /// Charges of open streams that are to be settled.
    open: Cell<usize>,
}

impl Freed {
    /// Whether so many charges are to be settled that there is no memory for more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.open.get() >= MOST
    }

    /// Whether anything is still to be settled of an open stream.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.open.get() > 0
    }

    /// One more charge is open.
    pub(super) fn open(&self) {
        self.open.set(self.open.get() + 1);
    }

    /// One is open no longer.
    pub(super) fn close(&self) {
        self.open.set(self.open.get().saturating_sub(1));
    }

    /// Whether there is anything.
    #[must_use]
    #[inline]
    pub fn is_any(&self) -> bool {
        self.any.get()
    }

    /// Takes all of it out, that first which came back first.
    #[must_use]
    pub fn take(&self) -> Vec<Unsettled> {
        self.any.set(false);
        self.all.take()
    }

    /// Adds what came back.
    pub fn add(&self, back: impl IntoIterator<Item = Unsettled>) {
        let mut all = self.all.take();
        all.extend(back);
        self.all.set(all);
        self.any.set(true);
    }
}
