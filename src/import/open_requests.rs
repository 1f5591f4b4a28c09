//! Requests in progress, by their keys.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashMap;

/// The requests in progress of each key, of which there is a maximum number.
#[derive(Debug, Default, Clone)]
pub(crate) struct OpenRequests {
    most: u64,
    open: HashMap<Vec<u8>, u64>,
    /// When each ends.
    ends: BinaryHeap<Reverse<(u64, Vec<u8>)>>,
}

impl OpenRequests {
    pub(crate) fn new(most: u64) -> OpenRequests {
        OpenRequests { most, ..OpenRequests::default() }
    }

    /// Returns true if a key has room for one more request now. All times have one unit.
    pub(crate) fn has_room(&mut self, key: &[u8], now: u64) -> bool {
        while self.ends.peek().is_some_and(|Reverse((end, _))| *end <= now) {
            let Some(Reverse((_, key))) = self.ends.pop() else { break };
            if let Some(open) = self.open.get_mut(&key) {
                *open = open.saturating_sub(1);
            }
        }
        self.open.get(key).copied().unwrap_or(0) < self.most
    }

    /// Adds a request that ends then.
    pub(crate) fn enter(&mut self, key: Vec<u8>, end: u64) {
        *self.open.entry(key.clone()).or_insert(0) += 1;
        self.ends.push(Reverse((end, key)));
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.ends.clear();
    }
}
