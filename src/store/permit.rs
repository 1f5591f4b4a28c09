//! The charges of an admitted request, until they are used, settled or cancelled.

mod cancel_queue;
mod open_charge;

use std::fmt;
use std::rc::Rc;

pub use cancel_queue::CancelQueue;
pub use open_charge::OpenCharge;

use open_charge::LinkedCharge;

/// The charges of one request. [`Permit::finish`] or [`Permit::settle`] closes it once; a drop
/// without either means that the client left. Empty if the request needs no work at its end.
#[derive(Default)]
#[must_use = "a dropped permit returns its charges"]
pub struct Permit {
    /// The first charge, which links to the others.
    open: Option<Box<LinkedCharge>>,
}

/// The end of a request without settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The request proceeded, and used its reservation.
    Served,
    /// The client left before the request proceeded.
    Left,
}

impl Permit {
    /// An empty permit.
    pub const NONE: Permit = Permit { open: None };

    /// A permit of charges, in their order. If the client leaves, they are added to `freed`.
    pub fn new(
        charges: impl DoubleEndedIterator<Item = OpenCharge>,
        freed: &Rc<CancelQueue>,
    ) -> Permit {
        let before = |next, charge| Some(LinkedCharge::new(charge, freed, next));
        Permit { open: charges.rev().fold(None, before) }
    }

    /// Returns true if the permit is empty.
    #[must_use]
    #[inline]
    pub fn is_none(&self) -> bool {
        self.open.is_none()
    }

    /// Calls `see` with each open charge.
    pub fn each(&mut self, mut see: impl FnMut(&mut OpenCharge)) {
        let mut next = &mut self.open;
        while let Some(open) = next {
            open.charge.iter_mut().for_each(&mut see);
            next = &mut open.next;
        }
    }

    /// Closes the permit at the end of the request.
    pub fn finish(mut self, end: End) {
        match end {
            End::Served => self.close(|_| {}),
            End::Left => drop(self),
        }
    }

    /// Closes the permit at the end of the request. `used` returns the usage of each charge.
    pub fn settle(mut self, mut used: impl FnMut(&OpenCharge) -> u64) {
        let Some(freed) = self.open.as_ref().map(|open| open.freed.clone()) else { return };
        self.close(|charge| {
            let used = used(&charge);
            freed.add(charge.with_used(used));
        });
    }

    /// Closes each charge, so that a drop does not cancel it.
    fn close(&mut self, mut each: impl FnMut(OpenCharge)) {
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
