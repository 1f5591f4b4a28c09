//! Requests that wait for their turn, of all engines of a worker.
//!
//! A place in the queue is an instant, not a counter, so nothing leaks when a worker dies. When a
//! client leaves, those behind it in the same line move up, each to the place of the one before: a line
//! is its places, and those who wait in it, in order; who leaves takes the last place along. So however
//! many leave at once, nobody is looked for one by one.

mod line;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashTable;

use diana_limiter::verdict::Held;
use diana_policy::time::Micros;
use diana_store::permit::Permit;
use line::{Lines, Name};

/// When a place's turn comes, and, of those of one instant, which was taken first.
type Turn = (Micros, u64);

/// The requests that wait.
#[derive(Debug, Default)]
pub struct Queue {
    /// The turns of all places, the next one first, and of some that are free again.
    turns: BinaryHeap<Reverse<Turn>>,
    places: HashTable<Place>,
    lines: Lines,
    waiting: HashTable<Waiting>,
    joined: u64,
}

#[derive(Debug)]
struct Place {
    turn: Turn,
    whose: Whose,
    permit: Permit,
}

/// For whom a place is.
#[derive(Debug, Clone, Copy)]
enum Whose {
    /// The request with the host's number for its stream.
    Stream(u32),
    /// The first one in a line.
    First(Name),
}

/// A request that waits.
#[derive(Debug)]
struct Waiting {
    stream: u32,
    /// The turn that it had when it came.
    turn: Turn,
    line: Option<Name>,
}

impl Queue {
    /// Lets a request wait that an engine holds.
    pub fn join(&mut self, stream: u32, engine: u32, held: Held) {
        let Held { until, line, place: permit, .. } = held;
        let turn = (until, self.joined);
        self.joined += 1;
        let name = line.map(|line| Name { engine, line });
        // Who could go before others in its line has a place of its own.
        let line = name.filter(|name| self.lines.join(*name, stream, turn));
        let whose = line.map_or(Whose::Stream(stream), Whose::First);
        self.turns.push(Reverse(turn));
        let place = Place { turn, whose, permit };
        self.places.insert_unique(hash(turn.1), place, |place| hash(place.turn.1));
        let waiting = Waiting { stream, turn, line };
        self.waiting
            .insert_unique(hash(stream.into()), waiting, |waiting| hash(waiting.stream.into()));
    }

    /// The next request whose turn has come by `now`, with the permit of its place; it waits no longer.
    pub fn release(&mut self, now: Micros) -> Option<(u32, Permit)> {
        let turn = self.turns.peek().filter(|turn| turn.0.0 <= now)?.0;
        let Place { whose, permit, .. } = self.free(turn)?;
        let stream = match whose {
            Whose::Stream(stream) => stream,
            Whose::First(line) => self.lines.release(line)?,
        };
        self.forget(stream)?;
        Some((stream, permit))
    }

    /// When the next turn comes.
    #[must_use]
    pub fn next(&self) -> Option<Micros> {
        self.turns.peek().map(|turn| turn.0.0)
    }

    /// Forgets a request whose client left. The permit of the place that nobody needs any more, if it waited.
    pub fn leave(&mut self, stream: u32) -> Option<Permit> {
        let Waiting { turn, line, .. } = self.forget(stream)?;
        let free = match line {
            Some(line) => self.lines.leave(line, turn)?,
            None => turn,
        };
        self.free(free).map(|place| place.permit)
    }

    /// Takes a place away. Turns of places that are free come to nothing when they are the next.
    fn free(&mut self, turn: Turn) -> Option<Place> {
        let found = self.places.find_entry(hash(turn.1), |place| place.turn == turn).ok()?;
        let (place, _) = found.remove();
        while let Some(Reverse(next)) = self.turns.peek() {
            let next = *next;
            if self.places.find(hash(next.1), |place| place.turn == next).is_some() {
                break;
            }
            self.turns.pop();
        }
        Some(place)
    }

    fn forget(&mut self, stream: u32) -> Option<Waiting> {
        let known = |waiting: &Waiting| waiting.stream == stream;
        let found = self.waiting.find_entry(hash(stream.into()), known).ok()?;
        Some(found.remove().0)
    }
}

/// Streams and turns are numbered in order.
fn hash(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
