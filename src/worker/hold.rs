//! The queue of held requests of all instances of a worker.
//!
//! A position in the queue is an instant, not a counter, so it needs no cleanup if the worker dies.
//! A line is the held requests of one caller under one rule. If a client leaves, the later requests
//! of its line move up by one position. A line stores its positions and its streams in separate
//! lists, in the same order. A departure removes one stream and the last position, and changes no
//! other entry, even if many clients leave at once.

mod line;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hashbrown::HashTable;

use diana_limiter::Held;
use diana_policy::time::Micros;
use diana_store::permit::Permit;
use line::{HoldQueues, QueueName};

/// The instant of a position. A sequence number orders positions of the same instant.
type HoldTurn = (Micros, u64);

/// The held requests.
#[derive(Debug, Default)]
pub struct Queue {
    /// The turns of all positions, the next one first. Contains some that are already free.
    turns: BinaryHeap<Reverse<HoldTurn>>,
    positions: HashTable<QueuePosition>,
    lines: HoldQueues,
    waiting: HashTable<HeldStream>,
    /// Requests that need not wait for their turn any longer, with the permits of their positions.
    freed: VecDeque<(u32, Permit)>,
    joined: u64,
}

#[derive(Debug)]
struct QueuePosition {
    turn: HoldTurn,
    owner: PositionOwner,
    permit: Permit,
}

/// The owner of a position.
#[derive(Debug, Clone, Copy)]
enum PositionOwner {
    /// The request with the host's number for its stream.
    Stream(u32),
    /// The first request of a line.
    First(QueueName),
}

/// A held request.
#[derive(Debug)]
struct HeldStream {
    stream: u32,
    instance: u32,
    /// Its turn on arrival.
    turn: HoldTurn,
    line: Option<QueueName>,
}

impl Queue {
    /// Adds a request that the limiter holds.
    pub fn join(&mut self, stream: u32, instance: u32, held: Held) {
        let Held { until, line, position: permit, .. } = held;
        let turn = (until, self.joined);
        self.joined += 1;
        let name = line.map(|line| QueueName { instance, line });
        // Out-of-order arrivals are queued individually.
        let line = name.filter(|name| self.lines.join(*name, stream, turn));
        let owner = line.map_or(PositionOwner::Stream(stream), PositionOwner::First);
        self.turns.push(Reverse(turn));
        let position = QueuePosition { turn, owner, permit };
        self.positions.insert_unique(hash(turn.1), position, |position| hash(position.turn.1));
        let waiting = HeldStream { stream, instance, turn, line };
        self.waiting
            .insert_unique(hash(stream.into()), waiting, |waiting| hash(waiting.stream.into()));
    }

    /// Removes the next request with a turn by `now`, and returns it with the permit of its
    /// position.
    pub fn release(&mut self, now: Micros) -> Option<(u32, Permit)> {
        if let Some(freed) = self.freed.pop_front() {
            return Some(freed);
        }
        let turn = self.turns.peek().filter(|turn| turn.0.0 <= now)?.0;
        let QueuePosition { owner, permit, .. } = self.free_position(turn)?;
        let stream = match owner {
            PositionOwner::Stream(stream) => stream,
            PositionOwner::First(line) => self.lines.release(line)?,
        };
        self.remove_stream(stream)?;
        Some((stream, permit))
    }

    /// The next turn.
    #[must_use]
    pub fn next(&self) -> Option<Micros> {
        if !self.freed.is_empty() {
            return Some(0);
        }
        self.turns.peek().map(|turn| turn.0.0)
    }

    /// Ends the wait of all requests of some instances, in the order of their turns.
    pub fn free(&mut self, instances: &[u32]) {
        let held = self.waiting.iter().filter(|held| instances.contains(&held.instance));
        let mut held: Vec<(HoldTurn, u32)> = held.map(|held| (held.turn, held.stream)).collect();
        held.sort_unstable();
        for (_, stream) in held {
            let permit = self.leave(stream).unwrap_or_default();
            self.freed.push_back((stream, permit));
        }
    }

    /// Removes a request after its client has left. Returns the permit of the position that becomes
    /// free. `None` if the request was not held.
    pub fn leave(&mut self, stream: u32) -> Option<Permit> {
        if let Some(index) = self.freed.iter().position(|(freed, _)| *freed == stream) {
            return self.freed.remove(index).map(|(_, permit)| permit);
        }
        let HeldStream { turn, line, .. } = self.remove_stream(stream)?;
        let free = match line {
            Some(line) => self.lines.leave(line, turn)?,
            None => turn,
        };
        self.free_position(free).map(|position| position.permit)
    }

    /// Frees a position. Turns of free positions are dropped when they are the next.
    fn free_position(&mut self, turn: HoldTurn) -> Option<QueuePosition> {
        let found =
            self.positions.find_entry(hash(turn.1), |position| position.turn == turn).ok()?;
        let (position, _) = found.remove();
        while let Some(Reverse(next)) = self.turns.peek() {
            let next = *next;
            if self.positions.find(hash(next.1), |position| position.turn == next).is_some() {
                break;
            }
            self.turns.pop();
        }
        Some(position)
    }

    fn remove_stream(&mut self, stream: u32) -> Option<HeldStream> {
        let known = |waiting: &HeldStream| waiting.stream == stream;
        let found = self.waiting.find_entry(hash(stream.into()), known).ok()?;
        Some(found.remove().0)
    }
}

/// Spreads the consecutive numbers of streams and turns.
fn hash(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
