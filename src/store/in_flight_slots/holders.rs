//! The workers that hold in-flight slots, in one value of shared data: the number and the latest
//! heartbeat of each. The slots of a worker count while it is in this list, so that requests need
//! no clocks of their own.
//!
//! Any worker removes those without heartbeats, but only if its own heartbeats are regular: after
//! the whole process stood still, the heartbeats of all workers are old, and each first waits for
//! the others. A worker that was removed and runs again keeps its number, and writes its slots
//! again before it takes another one.
//!
//! Words: a mark, the last assigned number, then the number and the heartbeat of each worker.

use std::rc::Rc;

use super::own_slots::OwnSlots;
use crate::slots::ATTEMPTS;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, SECOND};
use diana_policy::words;

const MARK: u64 = u64::from_le_bytes(*b"diana\0h\x01");

/// A worker without a heartbeat for this long is dead, or stands still.
const LIFE: Micros = 3 * SECOND / 2;

/// The heartbeat interval of a worker that holds slots.
const BEAT: Micros = SECOND / 2;

/// A worker may have stood still together with all others if its latest heartbeat is older than
/// this. The heartbeats of the others were at most [`BEAT`] and a tick old at that time. So while
/// its own is younger, none of theirs exceeds [`LIFE`].
const REGULAR: Micros = 4 * SECOND / 5;

/// No worker's clock is ahead by this much: a later heartbeat is corrupt.
const AHEAD: Micros = 60 * SECOND;

/// Bits of a worker's number.
pub(super) const NUMBER: u32 = 44;

/// Assigned numbers stay below this for centuries.
const LAST: u64 = 1 << (NUMBER - 1);

/// The name of the value in a namespace.
pub(super) fn name(namespace: &str) -> String {
    format!("diana/2/{namespace}/holders")
}

/// One worker's view of all of them.
#[derive(Debug)]
pub(crate) struct Holders {
    name: String,
    /// The number of this worker; zero until it needs one.
    own: u64,
    /// Its latest heartbeat.
    beat: Option<Micros>,
    /// Its slots, of all rules.
    pub(super) held: OwnSlots,
    /// Whether other workers may have dropped its slots, so that they must be written again.
    is_dropped: bool,
    /// Whether a worker without heartbeats has slots, so that it should be removed.
    has_suspects: bool,
    /// All workers at the latest read.
    seen: Vec<(u64, Micros)>,
}

impl Holders {
    /// A worker without slots.
    pub(crate) fn new(namespace: &str) -> Holders {
        Holders {
            name: name(namespace),
            own: 0,
            beat: None,
            held: OwnSlots::new(namespace),
            is_dropped: false,
            has_suspects: false,
            seen: Vec::new(),
        }
    }

    /// The number of this worker.
    pub(super) fn own(&self) -> u64 {
        self.own
    }

    /// Returns true if heartbeats are due: for slots of this worker, or to remove another one.
    pub(super) fn is_needed(&self) -> bool {
        self.has_suspects || self.held.is_any()
    }

    /// Writes a heartbeat of this worker, unless the latest one is recent, and removes workers
    /// without heartbeats. Returns false if that failed: then its slots may not count.
    pub(super) fn beat(&mut self, data: &Rc<dyn SharedData>, now: Micros) -> bool {
        let silent = self.beat.map(|beat| now.saturating_sub(beat));
        if silent.is_some_and(|silent| silent < BEAT) && !self.is_dropped {
            return true;
        }
        let is_regular = silent.is_some_and(|silent| silent < REGULAR);
        for _ in 0..ATTEMPTS {
            let (words, number) = words::read_all(&**data, &self.name);
            let (last, mut seen) = unpack(&words);
            let is_listed = seen.iter().any(|(id, _)| *id == self.own);
            seen.retain(|(id, beat)| *id != self.own && (!is_regular || is_alive(*beat, now)));
            // If the value was lost, the time ensures that the next number was never used.
            let next = last.max(now >> 10) + 1;
            let (own, last) = if self.own == 0 { (next, next) } else { (self.own, last) };
            self.has_suspects &= seen.iter().any(|(_, beat)| !is_alive(*beat, now));
            seen.push((own, now));
            if words::write_all(&pack(last, &seen), &**data, &self.name, number) {
                (self.own, self.beat, self.seen) = (own, Some(now), seen);
                // From here on no worker drops its slots, so it writes them now.
                self.is_dropped |= !is_listed && self.held.is_any();
                self.is_dropped &= !self.write_slots(data);
                return !self.is_dropped;
            }
        }
        false
    }

    /// Writes all slots of this worker again, if they were dropped. Returns false if other workers
    /// won every race.
    fn write_slots(&self, data: &Rc<dyn SharedData>) -> bool {
        let is_listed = |id| self.is_listed(id);
        !self.is_dropped || self.held.write_all(self.own, &**data, &is_listed)
    }

    /// Reads all workers.
    pub(super) fn read(&mut self, data: &Rc<dyn SharedData>) {
        self.seen = unpack(&words::read_all(&**data, &self.name).0).1;
    }

    /// Returns true if a worker was in the list at the latest read.
    pub(super) fn is_listed(&self, id: u64) -> bool {
        id == self.own && id > 0 || self.seen.iter().any(|(seen, _)| *seen == id)
    }

    /// Returns true if a worker had sent heartbeats at the latest read.
    pub(super) fn lives(&self, id: u64, now: Micros) -> bool {
        id == self.own && id > 0
            || self.seen.iter().any(|(seen, beat)| *seen == id && is_alive(*beat, now))
    }

    /// Records that a worker without heartbeats has slots.
    pub(super) fn suspect(&mut self) {
        self.has_suspects = true;
    }
}

fn is_alive(beat: Micros, now: Micros) -> bool {
    now.saturating_sub(beat) < LIFE && beat.saturating_sub(now) < AHEAD
}

fn unpack(words: &[u64]) -> (u64, Vec<(u64, Micros)>) {
    match words {
        [MARK, last, rest @ ..] if *last < LAST => {
            (*last, rest.as_chunks().0.iter().map(|&[id, beat]| (id, beat)).collect())
        }
        _ => (0, Vec::new()),
    }
}

fn pack(last: u64, seen: &[(u64, Micros)]) -> Vec<u64> {
    let all = seen.iter().flat_map(|&(id, beat)| [id, beat]);
    [MARK, last].into_iter().chain(all).collect()
}

/// Returns a function that is true for live workers, to inspect the slots of a removed rule.
pub(super) fn living(
    data: &dyn SharedData,
    namespace: &str,
    now: Micros,
) -> impl Fn(u64) -> bool + use<> {
    let (_, seen) = unpack(&words::read_all(data, &name(namespace)).0);
    move |id| seen.iter().any(|(seen, beat)| *seen == id && is_alive(*beat, now))
}
