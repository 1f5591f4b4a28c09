//! What is reserved for a request that was admitted, until it is used or given back.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use crate::key::Key;

/// What is reserved for one request. It is closed once, by [`Permit::finish`]; dropped without that it
/// means that the client left. Where nothing is to be done at the end it is empty.
#[derive(Default)]
#[must_use = "a permit that is dropped is given back"]
pub struct Permit(Option<Box<Reserved>>);

struct Reserved {
    seats: Vec<Seat>,
    freed: Rc<Freed>,
}

/// How a request ends.
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
    /// Tells the place from others.
    pub place: u64,
    /// How many permits it is long.
    pub cost: u64,
}

impl Permit {
    /// Nothing is reserved.
    pub const NONE: Permit = Permit(None);

    /// Reserves places in lines, which come back to `freed` if the client leaves.
    pub fn new(seats: Vec<Seat>, freed: &Rc<Freed>) -> Permit {
        if seats.is_empty() {
            return Permit::NONE;
        }
        Permit(Some(Box::new(Reserved { seats, freed: freed.clone() })))
    }

    /// Whether nothing is reserved.
    #[must_use]
    #[inline]
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// The request has ended.
    pub fn finish(mut self, end: End) {
        match end {
            End::Served => self.0 = None,
            End::Left => drop(self),
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seats = self.0.as_ref().map_or(&[][..], |reserved| &reserved.seats);
        f.debug_tuple("Permit").field(&seats).finish()
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        if let Some(reserved) = self.0.take() {
            reserved.freed.add(reserved.seats);
        }
    }
}

/// The places of requests whose clients left, until their engine takes them back.
#[derive(Default)]
pub struct Freed {
    any: Cell<bool>,
    seats: Cell<Vec<Seat>>,
}

impl Freed {
    /// Whether there are any.
    #[must_use]
    #[inline]
    pub fn is_any(&self) -> bool {
        self.any.get()
    }

    /// Takes all of them out, those first that came back first.
    #[must_use]
    pub fn take(&self) -> Vec<Seat> {
        self.any.set(false);
        self.seats.take()
    }

    #[inline(never)]
    fn add(&self, seats: Vec<Seat>) {
        let mut all = self.seats.take();
        all.extend(seats);
        self.seats.set(all);
        self.any.set(true);
    }
}
