//! What is reserved for a request that was admitted, until it is used, settled or given back.

mod freed;
mod unsettled;

use std::fmt;
use std::rc::Rc;

pub use freed::{Freed, Returned};
pub use unsettled::{Unsettled, permits};

use crate::key::Key;
use unsettled::Open;

/// What is reserved for one request. It is closed once, by [`Permit::finish`] or [`Permit::settle`]; dropped
/// without that it means that the client left. Where nothing is to be done at the end it is empty.
#[derive(Default)]
#[must_use = "a permit that is dropped is given back"]
pub struct Permit {
    seats: Option<Box<Seats>>,
    /// The first charge, which the others follow.
    open: Option<Box<Open>>,
}

/// Places in lines.
struct Seats {
    seats: Vec<Seat>,
    freed: Rc<Freed>,
}

/// How a request ends for which nothing is to be settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It went on, and used what was reserved for it.
    Served,
    /// Its client left before it went on.
    Left,
}

/// A place in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// The rule's number in its engine.
    pub rule: usize,
    /// The caller.
    pub key: Key,
    /// The plan of the rule by which it was judged.
    pub plan: u32,
    /// Tells the place from others.
    pub place: u64,
    /// How many permits it is long.
    pub cost: u64,
}

impl Permit {
    /// Nothing is reserved.
    pub const NONE: Permit = Permit { seats: None, open: None };

    /// Reserves places in lines, and charges that are to be settled. If the client leaves they come back to `freed`.
    pub fn new(seats: Vec<Seat>, charges: Vec<Unsettled>, freed: &Rc<Freed>) -> Permit {
        let seats = (!seats.is_empty()).then(|| Box::new(Seats { seats, freed: freed.clone() }));
        let before = |next, charge| Some(Open::new(charge, freed, next));
        Permit { seats, open: charges.into_iter().rev().fold(None, before) }
    }

    /// Whether nothing is reserved.
    #[must_use]
    #[inline]
    pub fn is_none(&self) -> bool {
        self.seats.is_none() && self.open.is_none()
    }

    /// What is to be settled, which leaves the places in lines.
    pub fn split_off(&mut self) -> Permit {
        Permit { seats: None, open: self.open.take() }
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
            End::Served => {
                self.seats.iter_mut().for_each(|it| it.seats.clear());
                self.close(|_| {});
            }
            End::Left => drop(self),
        }
    }

    /// The request has ended, of which `used` says what it used of each charge.
    pub fn settle(mut self, mut used: impl FnMut(&Unsettled) -> u64) {
        let Some(freed) = self.open.as_ref().map(|open| open.freed.clone()) else { return };
        self.close(|charge| {
            let used = used(&charge);
            freed.add([Returned::Settled(charge.with_used(used))]);
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
        let seats = self.seats.as_ref().map_or(&[][..], |it| &it.seats);
        f.debug_tuple("Permit").field(&seats).finish()
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        if !self.seats.is_empty() {
            self.freed.add(std::mem::take(&mut self.seats).into_iter().map(Returned::Seat));
        }
    }
}
