//! Lines of held requests, one per caller and rule of an instance.

use std::collections::VecDeque;

use hashbrown::HashTable;

use super::HoldTurn;
use diana_limiter::QueueLine;

/// Identifies a line in a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueueName {
    pub(super) instance: u32,
    pub(super) line: QueueLine,
}

/// All lines with held requests.
#[derive(Debug, Default)]
pub(super) struct HoldQueues(HashTable<HoldQueue>);

#[derive(Debug)]
struct HoldQueue {
    name: QueueName,
    /// Its positions, the first one first.
    positions: VecDeque<HoldTurn>,
    /// Its streams in order of arrival, with gaps for those that have left. Without gaps there are
    /// as many streams as positions.
    streams: VecDeque<(u64, Option<u32>)>,
}

impl HoldQueues {
    /// Adds a stream and its position at the end of a line. Returns false if its turn is not the
    /// last of the line.
    pub(super) fn join(&mut self, name: QueueName, stream: u32, turn: HoldTurn) -> bool {
        let same = |line: &HoldQueue| line.name == name;
        let new = || HoldQueue { name, positions: VecDeque::new(), streams: VecDeque::new() };
        let entry = self.0.entry(hash(name), same, |line| hash(line.name));
        let line = entry.or_insert_with(new).into_mut();
        let fits = line.positions.back().is_none_or(|last| *last < turn);
        if fits {
            line.positions.push_back(turn);
            line.streams.push_back((turn.1, Some(stream)));
        }
        fits
    }

    /// Removes the first position of a line. Returns the stream that it belongs to.
    pub(super) fn release(&mut self, name: QueueName) -> Option<u32> {
        self.change(name, |line| {
            line.positions.pop_front();
            let (_, stream) = line.streams.pop_front()?;
            line.close_gaps();
            stream
        })
    }

    /// Removes the stream with this turn on arrival. Returns the position that becomes free.
    pub(super) fn leave(&mut self, name: QueueName, turn: HoldTurn) -> Option<HoldTurn> {
        self.change(name, |line| {
            let at = line.streams.binary_search_by_key(&turn.1, |(came, _)| *came).ok()?;
            line.streams.get_mut(at)?.1.take()?;
            line.close_gaps();
            line.positions.pop_back()
        })
    }

    fn change<T>(
        &mut self,
        name: QueueName,
        change: impl FnOnce(&mut HoldQueue) -> Option<T>,
    ) -> Option<T> {
        let mut line = self.0.find_entry(hash(name), |line| line.name == name).ok()?;
        let changed = change(line.get_mut());
        if line.get().positions.is_empty() {
            line.remove();
        }
        changed
    }
}

impl HoldQueue {
    /// Removes gaps at both ends.
    fn close_gaps(&mut self) {
        while let Some((_, None)) = self.streams.front() {
            self.streams.pop_front();
        }
        while let Some((_, None)) = self.streams.back() {
            self.streams.pop_back();
        }
    }
}

fn hash(name: QueueName) -> u64 {
    let QueueName { instance, line: QueueLine { rule, key, .. } } = name;
    let rule = u64::from(instance) << 32 ^ rule as u64;
    (key.hash ^ rule).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
