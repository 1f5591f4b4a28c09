//! The workers that hold places, in one value of shared data: each with a number of its own, and when it last said that
//! it lives. What a worker holds that died ends with it, and no clock runs for a single request.
//!
//! Words: a mark, the last number that was given out, then number and instant of each worker.

use std::rc::Rc;

use crate::slots::ATTEMPTS;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, SECOND};
use diana_policy::words;

const MARK: u64 = u64::from_le_bytes(*b"diana\0h\x01");

/// A worker that has said nothing for so long has died.
const LIFE: Micros = 3 * SECOND / 2;

/// A worker that has said nothing for so long, since it stood still, may have been taken for dead.
const FORGOTTEN: Micros = SECOND;

/// How often it says something while it holds anything: two may get lost on the way of a busy machine.
const BEAT: Micros = SECOND / 2;

/// No worker is ahead of another one by so long: what is said to be later was written by nobody.
const AHEAD: Micros = 60 * SECOND;

/// Bits of a worker's number.
pub(super) const NUMBER: u32 = 44;

/// No number that was given out is larger, for centuries.
const LAST: u64 = 1 << (NUMBER - 1);

/// The name of the value in a namespace.
pub(super) fn name(namespace: &str) -> String {
    format!("diana/2/{namespace}/holders")
}

/// One worker among them.
#[derive(Debug)]
pub(crate) struct Holders {
    name: String,
    /// The number of this worker; zero until it has held anything.
    own: u64,
    /// When it last said that it lives.
    beat: Option<Micros>,
    /// Places that it holds, of all rules.
    pub(super) held: u64,
    /// All workers as they were when last looked at.
    seen: Vec<(u64, Micros)>,
}

impl Holders {
    /// A worker that holds nothing yet.
    pub(crate) fn new(namespace: &str) -> Holders {
        Holders { name: name(namespace), own: 0, beat: None, held: 0, seen: Vec::new() }
    }

    /// The number of this worker.
    pub(super) fn own(&self) -> u64 {
        self.own
    }

    /// Says that this worker lives, if it has not done so lately. Nothing that it holds counts unless that is so.
    ///
    /// If others may have dropped what it holds it goes by another number from then on: under the old one, requests that
    /// end would free the places of those that were let in since.
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
            // What comes after a value that was lost had no number of it either.
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

    /// Looks at all workers anew.
    pub(super) fn look(&mut self, data: &Rc<dyn SharedData>) {
        self.seen = unpack(&words::read_all(&**data, &self.name).0).1;
    }

    /// Whether a worker lives, as far as was last looked.
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

/// Finds out which workers live, to look at what is left of a rule.
pub(super) fn living(
    data: &dyn SharedData,
    namespace: &str,
    now: Micros,
) -> impl Fn(u64) -> bool + use<> {
    let (_, seen) = unpack(&words::read_all(data, &name(namespace)).0);
    move |id| seen.iter().any(|(seen, beat)| *seen == id && is_alive(*beat, now))
}
