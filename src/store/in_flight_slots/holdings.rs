//! In-flight slots of some callers of one rule in one value of shared data: the number of slots for
//! each pair of a caller and a worker.
//!
//! Words: a mark, then for each pair the caller's hash, and the worker's number with the number of
//! slots.

use super::holders::NUMBER;

const MARK: u64 = u64::from_le_bytes(*b"diana\0p\x01");

/// Bits of the number of slots of one worker, which is at most the limit.
const COUNT: u32 = 64 - NUMBER;

/// Stands for all callers without room for a separate entry.
pub(super) const SHARED: u64 = u64::MAX;

/// Bytes for this many callers, if this many workers hold slots of each.
pub(super) fn bytes(callers: u64, workers: u64) -> u64 {
    8 + callers * workers * 16
}

/// A worker's slots of one caller.
#[derive(Debug, Clone, Copy)]
struct Holding {
    caller: u64,
    worker: u64,
    slots: u64,
}

/// A copy of the value.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    /// Sorted by caller.
    all: Vec<Holding>,
}

impl Holdings {
    /// Parses words. `None` if they are corrupt.
    pub(super) fn read(words: &[u64]) -> Option<Holdings> {
        let [MARK, rest @ ..] = words else { return None };
        let (pairs, []) = rest.as_chunks() else { return None };
        let holding = |&[caller, word]: &[u64; 2]| Holding {
            caller,
            worker: word >> COUNT,
            slots: word & ((1 << COUNT) - 1),
        };
        let all: Vec<_> = pairs.iter().map(holding).collect();
        all.is_sorted_by_key(|holding| holding.caller).then_some(Holdings { all })
    }

    /// The words to write.
    pub(super) fn words(&self) -> Vec<u64> {
        let pair = |it: &Holding| [it.caller, it.worker << COUNT | it.slots];
        [MARK].into_iter().chain(self.all.iter().flat_map(pair)).collect()
    }

    /// Returns true if all workers with slots are alive.
    pub(super) fn is_held_by(&self, lives: impl Fn(u64) -> bool) -> bool {
        self.all.iter().all(|holding| lives(holding.worker))
    }

    /// Drops the slots of dead workers.
    pub(super) fn keep(&mut self, lives: impl Fn(u64) -> bool) {
        self.all.retain(|holding| lives(holding.worker));
    }

    /// Returns true if there are no slots.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The hash under which a caller's slots are counted, if `room` callers have separate entries.
    /// While shared slots exist, callers without an entry may own some of them.
    pub(super) fn home(&self, caller: u64, room: usize) -> u64 {
        let has = |hash: u64| self.all.iter().any(|holding| holding.caller == hash);
        if has(caller) {
            return caller;
        }
        let callers = self.all.chunk_by(|one, next| one.caller == next.caller).count();
        if has(SHARED) || callers >= room { SHARED } else { caller }
    }

    /// Slots in use under a hash.
    pub(super) fn taken(&self, home: u64) -> u64 {
        let of_home = self.all.iter().filter(|holding| holding.caller == home);
        of_home.map(|holding| holding.slots).sum()
    }

    /// Adds slots of a worker.
    pub(super) fn add(&mut self, home: u64, worker: u64, slots: u64) {
        match self.all.iter_mut().find(|it| it.caller == home && it.worker == worker) {
            Some(holding) => holding.slots += slots,
            None => {
                let at = self.all.partition_point(|holding| holding.caller < home);
                self.all.insert(at, Holding { caller: home, worker, slots });
            }
        }
    }

    /// Frees a worker's slot under a hash. Returns false if there is none.
    pub(super) fn free(&mut self, home: u64, worker: u64) -> bool {
        let is_it = |it: &&mut Holding| it.caller == home && it.worker == worker && it.slots > 0;
        let Some(holding) = self.all.iter_mut().find(is_it) else { return false };
        holding.slots -= 1;
        self.all.retain(|holding| holding.slots > 0);
        true
    }

    /// Returns true if a hash stands for callers that share.
    pub(super) fn is_shared(home: u64) -> bool {
        home == SHARED
    }
}
