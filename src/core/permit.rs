//! What is reserved for a request that was admitted, until it is used, settled or given back.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use crate::key::Key;
use crate::settlement::Settlement;
use crate::settling::Heard;

/// Most charges of open streams that are settled at their end: with all that lies around them some 16 MiB.
const MOST: usize = 90_000;

/// What is reserved for one request. It is closed once, by [`Permit::finish`] or [`Permit::settle`]; dropped
/// without that it means that the client left. Where nothing is to be done at the end it is empty.
#[derive(Default)]
#[must_use = "a permit that is dropped is given back"]
pub struct Permit(Option<Box<Reserved>>);

/// Streams that something is to be settled of may be open in very many: each takes no more than it must.
struct Reserved {
    seats: Box<[Seat]>,
    charges: Box<[Unsettled]>,
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
    /// Tells the place from others.
    pub place: u64,
    /// How many permits it is long.
    pub cost: u64,
}

/// A charge that is settled when the stream of its request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsettled {
    /// The rule's number in its engine.
    pub rule: usize,
    /// The caller.
    pub key: Key,
    /// Whether the caller has a name, so that it is its own doing how the request ends.
    pub is_own: bool,
    /// Whether the gateway's part of a limit was charged in place of the fleet's.
    pub is_alone: bool,
    /// What was charged.
    pub settlement: Settlement,
    /// What is known of the response so far.
    pub heard: Heard,
}

impl Permit {
    /// Nothing is reserved.
    pub const NONE: Permit = Permit(None);

    /// Reserves places in lines, and charges that are to be settled. If the client leaves they come back to `freed`.
    pub fn new(seats: Vec<Seat>, charges: Vec<Unsettled>, freed: &Rc<Freed>) -> Permit {
        if seats.is_empty() && charges.is_empty() {
            return Permit::NONE;
        }
        freed.open.set(freed.open.get() + charges.len());
        let (seats, charges) = (seats.into(), charges.into());
        Permit(Some(Box::new(Reserved { seats, charges, freed: freed.clone() })))
    }

    /// Whether nothing is reserved.
    #[must_use]
    #[inline]
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// What is to be settled, which leaves the places in lines.
    pub fn split_off(&mut self) -> Permit {
        let Some(reserved) = &mut self.0 else { return Permit::NONE };
        let (charges, freed) = (std::mem::take(&mut reserved.charges), reserved.freed.clone());
        freed.close(charges.len());
        Permit::new(Vec::new(), charges.into(), &freed)
    }

    /// The charges that are to be settled.
    pub fn charges(&mut self) -> &mut [Unsettled] {
        self.0.as_mut().map_or(&mut [], |reserved| &mut reserved.charges)
    }

    /// Takes the charge of a caller by a rule out of it, if there is one.
    pub fn take_out(&mut self, rule: usize, key: Key) -> Option<Unsettled> {
        let reserved = self.0.as_mut()?;
        let found = reserved.charges.iter().position(|it| (it.rule, it.key) == (rule, key))?;
        let mut charges = std::mem::take(&mut reserved.charges).into_vec();
        let charge = charges.swap_remove(found);
        reserved.charges = charges.into();
        reserved.freed.close(1);
        Some(charge)
    }

    /// The request has ended.
    pub fn finish(mut self, end: End) {
        match end {
            End::Served => {
                if let Some(reserved) = self.0.take() {
                    reserved.freed.close(reserved.charges.len());
                }
            }
            End::Left => drop(self),
        }
    }

    /// The request has ended, of which `used` says what it used of each charge.
    pub fn settle(mut self, mut used: impl FnMut(&Unsettled) -> u64) {
        if let Some(reserved) = self.0.take() {
            let settle = |mut charge: Unsettled| {
                charge.settlement.used = used(&charge);
                Returned::Settled(charge)
            };
            reserved.freed.close(reserved.charges.len());
            reserved.freed.add(reserved.charges.into_iter().map(settle));
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
            reserved.give_back();
        }
    }
}

impl Reserved {
    #[inline(never)]
    fn give_back(self) {
        self.freed.close(self.charges.len());
        let seats = self.seats.into_iter().map(Returned::Seat);
        self.freed.add(seats.chain(self.charges.into_iter().map(Returned::Settled)));
    }
}

/// Something that a request no longer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returned {
    /// Its place in a line.
    Seat(Seat),
    /// What it did not use of a charge; or what it used beyond it.
    Settled(Unsettled),
}

/// What requests no longer need, until their engine takes it back.
#[derive(Default)]
pub struct Freed {
    any: Cell<bool>,
    all: Cell<Vec<Returned>>,
    /// Charges of open streams that are to be settled.
    open: Cell<usize>,
}

impl Freed {
    /// Whether so many charges are to be settled that there is no memory for more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.open.get() >= MOST
    }

    fn close(&self, charges: usize) {
        self.open.set(self.open.get().saturating_sub(charges));
    }

    /// Whether there is anything, or something was signalled.
    #[must_use]
    #[inline]
    pub fn is_any(&self) -> bool {
        self.any.get()
    }

    /// There is something to see to before another request is decided about.
    pub fn signal(&self) {
        self.any.set(true);
    }

    /// Takes all of it out, that first which came back first.
    #[must_use]
    pub fn take(&self) -> Vec<Returned> {
        self.any.set(false);
        self.all.take()
    }

    /// Adds what came back.
    pub fn add(&self, back: impl IntoIterator<Item = Returned>) {
        let mut all = self.all.take();
        all.extend(back);
        self.all.set(all);
        self.any.set(true);
    }
}
