//! The workers that hold in-flight slots, in one value of shared data: the number and the latest
//! heartbeat of each. Slots of a dead worker expire with it, so that requests need no clocks of
//! their own.
//!
//! Words: a mark, the last assigned number, then the number and the heartbeat of each worker.

use std::rc::Rc;

use crate::slots::ATTEMPTS;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, SECOND};
use diana_policy::words;

const MARK: u64 = u64::from_le_bytes(*b"diana\0h\x01");

/// A worker without a heartbeat for this long is dead.
const LIFE: Micros = 3 * SECOND / 2;

/// Other workers may already have dropped a worker without a heartbeat for this long, for example
/// one that was suspended.
const FORGOTTEN: Micros = SECOND;

/// The heartbeat interval of a worker that holds slots. On a busy machine, two heartbeats may be
/// missed.
const BEAT: Micros = SECOND / 2;

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
    /// The number of this worker; zero until it holds a slot.
    own: u64,
    /// Its latest heartbeat.
    beat: Option<Micros>,
    /// Slots that it holds, of all rules.
    pub(super) held: u64,
    /// All workers at the latest read.
    seen: Vec<(u64, Micros)>,
}

impl Holders {
    /// A worker without slots.
    pub(crate) fn new(namespace: &str) -> Holders {
        Holders { name: name(namespace), own: 0, beat: None, held: 0, seen: Vec::new() }
    }

    /// The number of this worker.
    pub(super) fn own(&self) -> u64 {
        self.own
    }

    /// Writes a heartbeat of this worker, unless the latest one is recent. Returns false if that
    /// failed: then its slots do not count.
    ///
    /// If others may have dropped its slots, the worker gets a new number. Under the old one, its
    /// ending requests would free slots that were taken since.
    pub(super) fn beat(&mut self, data: &Rc<dyn SharedData>, now: Micros) -> bool {
        let silent = self.beat.map(|beat| now.saturating_sub(beat));
        if silent.is_some_and(|silent| silent < BEAT) {
            return true;
        }
        let is_late = silent.is_some_and(|silent| silent >= FORGOTTEN);
        for _ in 0..ATTEMPTS {
            let (words, number) = words::read_all(&**data, &self.name);
            let (last, mut seen) = unpack(&words);
            let is_known = seen.iter().any(|(id, _)| *id == self.own);
            if self.held > 0 && (is_late || !is_known) {
                (self.own, self.held) = (0, 0);
            }
            seen.retain(|(id, beat)| *id != self.own && is_alive(*beat, now));
            // If the value was lost, the time ensures that the next number was never used.
            let next = last.max(now >> 10) + 1;
            let (own, last) = if self.own == 0 { (next, next) } else { (self.own, last) };
            seen.push((own, now));
            if words::write_all(&pack(last, &seen), &**data, &self.name, number) {
                (self.own, self.beat, self.seen) = (own, Some(now), seen);
                return true;
            }
        }
        false
    }

    /// Reads all workers.
    pub(super) fn read(&mut self, data: &Rc<dyn SharedData>) {
        self.seen = unpack(&words::read_all(&**data, &self.name).0).1;
    }

    /// Returns true if a worker was alive at the latest read.
    pub(super) fn lives(&self, id: u64, now: Micros) -> bool {
        id == self.own && id > 0
            || self.seen.iter().any(|(seen, beat)| *seen == id && is_alive(*beat, now))
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
