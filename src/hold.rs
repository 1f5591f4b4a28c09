//! Requests that wait for their turn, of all engines of a worker.
//!
//! A place in the queue is an instant, not a counter, so nothing leaks when a worker dies. When a
//! client leaves, those behind it in the same line move up, each to the place of the one before.

use std::collections::VecDeque;

use crate::time::Micros;
use crate::verdict::{Held, Line, Seat};

/// The requests that wait, the next one first.
#[derive(Debug, Default)]
pub struct Queue(VecDeque<Place>);

#[derive(Debug)]
struct Place {
    until: Micros,
    /// The request, by the host's number for its stream.
    stream: u32,
    /// The engine that holds it, and the line in which it moves up there.
    engine: u32,
    line: Option<Line>,
    seats: Vec<Seat>,
}

impl Queue {
    /// Lets a request wait that an engine holds.
    pub fn join(&mut self, stream: u32, engine: u32, held: Held) {
        let Held { until, line, seats, .. } = held;
        let at = self.0.partition_point(|place| place.until <= until);
        self.0.insert(at, Place { until, stream, engine, line, seats });
    }

    /// The next request whose turn has come by `now`; it waits no longer.
    pub fn release(&mut self, now: Micros) -> Option<u32> {
        self.0.front().filter(|place| place.until <= now)?;
        self.0.pop_front().map(|place| place.stream)
    }

    /// When the next turn comes.
    #[must_use]
    pub fn next(&self) -> Option<Micros> {
        self.0.front().map(|place| place.until)
    }

    /// Forgets a request whose client left. The places that nobody needs any more, if it waited.
    pub fn leave(&mut self, stream: u32) -> Option<Vec<Seat>> {
        let mut free = self.0.iter().position(|place| place.stream == stream)?;
        let left = self.0.get(free)?;
        if let Some(line) = left.line {
            let engine = left.engine;
            for at in free + 1..self.0.len() {
                let Some(behind) = self.0.get(at) else { break };
                if behind.engine == engine && behind.line == Some(line) {
                    let moved = behind.stream;
                    self.0.get_mut(free).into_iter().for_each(|place| place.stream = moved);
                    free = at;
                }
            }
        }
        self.0.remove(free).map(|place| place.seats)
    }
}
