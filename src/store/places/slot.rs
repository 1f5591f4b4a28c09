//! The places of some callers of one rule in one value of shared data: for each caller and each worker that holds any of
//! its places how many they are.
//!
//! Words: a mark, then for each of them the caller's hash, and the worker's number with the places that it holds.

use super::holders::NUMBER;

const MARK: u64 = u64::from_le_bytes(*b"diana\0p\x01");

/// Bits of how many places one worker holds, which is at most the limit.
const COUNT: u32 = 64 - NUMBER;

/// For all callers together that found no room.
const SHARED: u64 = u64::MAX;

/// Bytes that it takes for so many callers, each of whose places so many workers hold.
pub(super) fn bytes(callers: u64, workers: u64) -> u64 {
    8 + callers * workers * 16
}

/// What a worker holds of a caller's places.
#[derive(Debug, Clone, Copy)]
struct Holding {
    caller: u64,
    worker: u64,
    places: u64,
}

/// A copy of the value.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// In the order of the callers.
    all: Vec<Holding>,
}

impl Slot {
    /// What was written; nothing if these words were not.
    pub(super) fn read(words: &[u64]) -> Option<Slot> {
        let [MARK, rest @ ..] = words else { return None };
        let (pairs, []) = rest.as_chunks() else { return None };
        let holding = |&[caller, word]: &[u64; 2]| Holding {
            caller,
            worker: word >> COUNT,
            places: word & ((1 << COUNT) - 1),
        };
        let all: Vec<_> = pairs.iter().map(holding).collect();
        all.is_sorted_by_key(|holding| holding.caller).then_some(Slot { all })
    }

    /// What is to be written.
    pub(super) fn words(&self) -> Vec<u64> {
        let pair = |it: &Holding| [it.caller, it.worker << COUNT | it.places];
        [MARK].into_iter().chain(self.all.iter().flat_map(pair)).collect()
    }

    /// Whether all who hold anything are among those.
    pub(super) fn is_held_by(&self, lives: impl Fn(u64) -> bool) -> bool {
        self.all.iter().all(|holding| lives(holding.worker))
    }

    /// Drops what is held by others than those.
    pub(super) fn keep(&mut self, lives: impl Fn(u64) -> bool) {
        self.all.retain(|holding| lives(holding.worker));
    }

    /// Whether nobody holds anything.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Under which hash the places of a caller are counted, where `room` callers have one of their own. As long as
    /// any are shared, whoever has none of its own may be among those who hold them.
    pub(super) fn home(&self, caller: u64, room: usize) -> u64 {
        let has = |hash: u64| self.all.iter().any(|holding| holding.caller == hash);
        if has(caller) {
            return caller;
        }
        let callers = self.all.chunk_by(|one, next| one.caller == next.caller).count();
        if has(SHARED) || callers >= room { SHARED } else { caller }
    }

    /// Places that are taken under a hash.
    pub(super) fn taken(&self, home: u64) -> u64 {
        let of_home = self.all.iter().filter(|holding| holding.caller == home);
        of_home.map(|holding| holding.places).sum()
    }

    /// A worker takes one more.
    pub(super) fn take(&mut self, home: u64, worker: u64) {
        match self.all.iter_mut().find(|it| it.caller == home && it.worker == worker) {
            Some(holding) => holding.places += 1,
            None => {
                let at = self.all.partition_point(|holding| holding.caller < home);
                self.all.insert(at, Holding { caller: home, worker, places: 1 });
            }
        }
    }

    /// A worker gives one back of a caller, which may be shared. Whether it holds any.
    pub(super) fn give_back(&mut self, caller: u64, worker: u64) -> bool {
        let of =
            |hash| move |it: &Holding| it.caller == hash && it.worker == worker && it.places > 0;
        let found = self.all.iter().position(of(caller));
        let found = found.or_else(|| self.all.iter().position(of(SHARED)));
        let Some(holding) = found.and_then(|at| self.all.get_mut(at)) else { return false };
        holding.places -= 1;
        self.all.retain(|holding| holding.places > 0);
        true
    }

    /// Whether a hash is that of those who share.
    pub(super) fn is_shared(home: u64) -> bool {
        home == SHARED
    }
}
