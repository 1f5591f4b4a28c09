//! Values under numbers that are given out in order.
//!
//! They mostly go in the order in which they came, and a search tree costs 7 KB of the module for each
//! kind of value.

use std::collections::VecDeque;

/// A queue of values under rising numbers.
#[derive(Debug)]
pub struct Tickets<T>(VecDeque<(u64, T)>);

impl<T> Default for Tickets<T> {
    fn default() -> Self {
        Tickets(VecDeque::new())
    }
}

impl<T> Tickets<T> {
    /// Adds the value of a ticket that there is not yet.
    pub fn insert(&mut self, ticket: u64, value: T) {
        let place = self.0.partition_point(|(other, _)| *other < ticket);
        self.0.insert(place, (ticket, value));
    }

    /// The value of a ticket.
    #[must_use]
    pub fn get(&self, ticket: u64) -> Option<&T> {
        self.0.get(self.find(ticket)?).map(|(_, value)| value)
    }

    /// The value of a ticket, to be changed.
    pub fn get_mut(&mut self, ticket: u64) -> Option<&mut T> {
        let place = self.find(ticket)?;
        self.0.get_mut(place).map(|(_, value)| value)
    }

    /// Takes the value of a ticket out.
    pub fn remove(&mut self, ticket: u64) -> Option<T> {
        let place = self.find(ticket)?;
        self.0.remove(place).map(|(_, value)| value)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, ticket: u64) -> Option<usize> {
        self.0.binary_search_by_key(&ticket, |(other, _)| *other).ok()
    }
}
