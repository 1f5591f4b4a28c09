//! Requests that wait for their turn, of all engines of a worker.
//!
//! A place in the queue is an instant, not a counter, so nothing leaks when a worker dies. When a
//! client leaves, those behind it in the same line move up, each to the place of the one before: a line
//! is its places, and those who wait in it, in order; who leaves takes the last place along. So however
//! many leave at once, nobody is looked for one by one.

mod line;

use std::collections::BTreeMap;

use hashbrown::HashTable;

use diana_core::permit::Permit;
use diana_core::time::Micros;
use diana_core::verdict::Held;
use line::{Lines, Name};

/// When a place's turn comes, and, of those of one instant, which was taken first.
type Turn = (Micros, u64);

/// The requests that wait.
#[derive(Debug, Default)]
pub struct Queue {
    /// The next one first.
    places: BTreeMap<Turn, Place>,
    lines: Lines,
    waiting: HashTable<Waiting>,
    joined: u64,
}

#[derive(Debug)]
struct Place {
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
        let Held { until, line, permit, .. } = held;
        let turn = (until, self.joined);
        self.joined += 1;
        let name = line.map(|line| Name { engine, line });
        // Who could go before others in its line has a place of its own.
        let line = name.filter(|name| self.lines.join(*name, stream, turn));
        let whose = line.map_or(Whose::Stream(stream), Whose::First);
        self.places.insert(turn, Place { whose, permit });
        let waiting = Waiting { stream, turn, line };
        self.waiting.insert_unique(hash(stream), waiting, |waiting| hash(waiting.stream));
    }

    /// The next request whose turn has come by `now`, with the permit of its place; it waits no longer.
    pub fn release(&mut self, now: Micros) -> Option<(u32, Permit)> {
        let first = self.places.first_entry().filter(|first| first.key().0 <= now)?;
        let Place { whose, permit } = first.remove();
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
        self.places.first_key_value().map(|((until, _), _)| *until)
    }

    /// Forgets a request whose client left. The permit of the place that nobody needs any more, if it waited.
    pub fn leave(&mut self, stream: u32) -> Option<Permit> {
        let Waiting { turn, line, .. } = self.forget(stream)?;
        let free = match line {
            Some(line) => self.lines.leave(line, turn)?,
            None => turn,
        };
        self.places.remove(&free).map(|place| place.permit)
    }

    fn forget(&mut self, stream: u32) -> Option<Waiting> {
        let known = |waiting: &Waiting| waiting.stream == stream;
        let found = self.waiting.find_entry(hash(stream), known).ok()?;
        Some(found.remove().0)
    }
}

/// The host numbers streams in order.
fn hash(stream: u32) -> u64 {
    u64::from(stream).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
