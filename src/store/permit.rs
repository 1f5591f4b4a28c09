//! What is reserved for a request that was admitted, until it is used, settled or given back.

mod freed;
mod unsettled;

use std::fmt;
use std::rc::Rc;

pub use freed::Freed;
pub use unsettled::{Unsettled, permits};

use unsettled::Open;

/// What is reserved for one request. It is closed once, by [`Permit::finish`] or [`Permit::settle`]; dropped
/// without that it means that the client left. Where nothing is to be done at the end it is empty.
#[derive(Default)]
#[must_use = "a permit that is dropped is given back"]
pub struct Permit {
    /// The first charge, which the others follow.
    open: Option<Box<Open>>,
}

/// How a request ends for which nothing is to be settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It went on, and used what was reserved for it.
    Served,
    /// Its client left before it went on.
    Left,
}

impl Permit {
    /// Nothing is reserved.
    pub const NONE: Permit = Permit { open: None };

    /// Reserves charges, in their order. If the client leaves they come back to `freed`.
    pub fn new(charges: Vec<Unsettled>, freed: &Rc<Freed>) -> Permit {
        let before = |next, charge| Some(Open::new(charge, freed, next));
        Permit { open: charges.into_iter().rev().fold(None, before) }
    }

    /// Whether nothing is reserved.
    #[must_use]
    #[inline]
    pub fn is_none(&self) -> bool {
        self.open.is_none()
    }

    /// Shows each charge that is to be settled.
    pub fn each(&mut self, mut see: impl FnMut(&mut Unsettled)) {
        let mut next = &mut self.open;
        while let Some(open) = next {
            open.charge.iter_mut().for_each(&mut see);
            next = &mut open.next;
        }
    }

    /// The request has ended.
    pub fn finish(mut self, end: End) {
        match end {
            End::Served => self.close(|_| {}),
            End::Left => drop(self),
        }
    }

    /// The request has ended, of which `used` says what it used of each charge.
    pub fn settle(mut self, mut used: impl FnMut(&Unsettled) -> u64) {
        let Some(freed) = self.open.as_ref().map(|open| open.freed.clone()) else { return };
        self.close(|charge| {
            let used = used(&charge);
            freed.add([charge.with_used(used)]);
        });
    }

    /// Closes each charge, of which nothing comes back by itself.
    fn close(&mut self, mut each: impl FnMut(Unsettled)) {
        while let Some(mut open) = self.open.take() {
            self.open = open.next.take();
            open.close().into_iter().for_each(&mut each);
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Permit").field(&self.open.as_ref().map(|open| &open.charge)).finish()
    }
}
