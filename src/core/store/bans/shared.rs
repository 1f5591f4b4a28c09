//! Bans of a gateway: sets in a fixed number of values of shared data, changed by compare-and-swap.
//!
//! A worker gathers refusals and passes them on with its timer, or at once if they may be enough for
//! a ban. All workers look at one small record twenty times a second: it says when the last ban ends,
//! so that where nobody is banned nothing else is asked, and how many bans have begun, so that what a
//! worker knows of a caller is known until the next one begins.

mod elsewhere;
mod set_by;

use std::rc::Rc;

use super::{Bans, set};
use crate::key::Key;
use crate::policy::Ban;
use crate::port::SharedData;
use crate::store::slots::names::Names;
use crate::store::slots::traffic::{Traffic, one_more};
use crate::time::{Micros, SECOND};
use crate::words;

/// How old what a worker knows of the record may be.
const STALE: Micros = SECOND / 20;

/// Callers that a worker knows something about at a time.
const LINES: usize = 4096;

/// Compare-and-swaps that may be lost in a row.
const ATTEMPTS: usize = 1_000;

/// What a worker knows of a caller.
#[derive(Debug, Clone, Copy)]
struct Line {
    key: Key,
    /// When its ban ends, as of so many bans begun.
    until: Micros,
    epoch: u64,
    /// Refusals that were not passed on yet, and those that were counted when that was last done.
    refusals: u64,
    recent: u64,
    /// Whether its line is on the list.
    listed: bool,
    /// When it was last to be looked for elsewhere.
    looked: Micros,
}

const NOBODY: Line =
    Line { key: Key::ALL, until: 0, epoch: 0, refusals: 0, recent: 0, listed: false, looked: 0 };

/// The record that all workers look at.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    /// How many sets there are: whoever came first has counted them by its `keys`.
    sets: u64,
    /// Bans begun, and one.
    epoch: u64,
    /// The end of the ban that ends last.
    latest: Micros,
}

/// The bans of one rule in this gateway.
pub(crate) struct Shared {
    ban: Ban,
    data: Rc<dyn SharedData>,
    traffic: Rc<Traffic>,
    names: Names,
    keys: usize,
    record: Record,
    /// When the record is to be looked at again.
    stale: Micros,
    lines: Vec<Line>,
    /// Lines with refusals that were not passed on.
    list: Vec<usize>,
    begun: u64,
    /// Whether somebody else counts refusals, and those that it is to count, by their callers.
    hands_out: bool,
    /// Whether bans may be lifted there.
    lifts: bool,
    refusals: Vec<(Key, u64)>,
}

/// What somebody else who counts refusals says about a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// Ticks for which it is still banned.
    pub(crate) left: Micros,
    /// Whether the ban began with what was just counted.
    pub(crate) begins: bool,
    /// Recent refusals, if any were just counted.
    pub(crate) recent: u64,
}

/// Bytes that a worker takes for what it knows of so many callers.
pub(crate) fn bytes(callers: usize) -> u64 {
    (callers.min(LINES) * (size_of::<Line>() + size_of::<usize>())) as u64
}

impl Shared {
    pub(in crate::store) fn new(
        ban: Ban,
        names: Names,
        keys: usize,
        data: Rc<dyn SharedData>,
        traffic: Rc<Traffic>,
    ) -> Shared {
        Shared {
            ban,
            data,
            traffic,
            names,
            keys,
            record: Record::default(),
            stale: 0,
            lines: Vec::new(),
            list: Vec::new(),
            begun: 0,
            hands_out: false,
            lifts: false,
            refusals: Vec::new(),
        }
    }

    /// Looks at the record, and puts `until` into it if a ban begins that ends then.
    fn learn(&mut self, begins: Option<Micros>, now: Micros) {
        self.stale = now.saturating_add(STALE);
        for _ in 0..ATTEMPTS {
            let name = self.names.count();
            // As many words as other records have, so that there is one function for all of them.
            let ([sets, epoch, latest, ..], number) = words::read::<8>(&*self.data, name);
            let more = u64::from(sets == 0 || begins.is_some());
            let latest = latest.max(begins.unwrap_or(0));
            let epoch = epoch.wrapping_add(more);
            let sets = if sets == 0 { set::number(self.keys) } else { sets };
            let words = [sets, epoch, latest, 0, 0, 0, 0, 0];
            if more == 0 || words::write(words, &*self.data, name, number) {
                self.record = Record { sets, epoch, latest };
                self.names.recount(sets);
                return;
            }
            one_more(&self.traffic.conflicts);
        }
    }

    /// A copy of a caller's set. What is no set counts as an empty one.
    #[inline(never)]
    fn get(&mut self, key: Key) -> (Vec<u64>, Option<u32>) {
        let (bytes, number) = self.data.get(self.names.slot(key)).unzip();
        let bytes = bytes.unwrap_or_default();
        let mut set: Vec<u64> =
            bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        if bytes.len() != set::SIZE * 8 {
            set = vec![0; set::SIZE];
        }
        (set, number)
    }

    /// The place where a caller's line can be.
    fn place(&self, key: Key) -> usize {
        (key.hash % self.lines.len().max(1) as u64) as usize
    }

    /// The place of a caller's line, made its.
    fn claim(&mut self, key: Key, now: Micros) -> usize {
        if self.record.sets == 0 {
            self.learn(None, now);
        }
        if self.lines.is_empty() {
            self.lines.resize(self.keys.clamp(1, LINES), NOBODY);
        }
        let place = self.place(key);
        if self.lines.get(place).is_some_and(|line| line.key != key) {
            self.pass_on(place, now);
            if let Some(line) = self.lines.get_mut(place) {
                // Where bans are lifted, what others have left here of one may be over.
                let looked = if self.lifts { 0 } else { now };
                *line = Line { key, listed: line.listed, looked, ..NOBODY };
            }
        }
        place
    }

    /// Has the refusals of a line counted.
    fn pass_on(&mut self, place: usize, now: Micros) {
        let Some(line) = self.lines.get_mut(place) else { return };
        let (key, refusals) = (line.key, std::mem::take(&mut line.refusals));
        match refusals {
            0 => {}
            _ if self.hands_out => self.refusals.push((key, refusals)),
            _ => self.count(key, refusals, now),
        }
    }

    /// Counts refusals of a caller for all workers.
    pub(crate) fn count(&mut self, key: Key, refusals: u64, now: Micros) {
        let counted = self.change(key, set::Change::Count(refusals), now);
        self.begun += u64::from(counted.begins);
        if counted.begins || self.is_untold(counted.until, now) {
            self.learn(Some(counted.until), now);
        }
        let (place, epoch) = (self.place(key), self.record.epoch);
        if let Some(line) = self.lines.get_mut(place).filter(|line| line.key == key) {
            (line.until, line.recent, line.epoch) = (counted.until, counted.recent, epoch);
        }
    }

    /// Whether a ban is in force that the record does not tell of: whoever wrote it may have ended before
    /// telling, or either value was spoiled. The caller would be neither banned nor counted.
    fn is_untold(&mut self, until: Micros, now: Micros) -> bool {
        if until > self.record.latest {
            self.learn(None, now);
        }
        until > self.record.latest && self.ban.left(until, now) > 0
    }

    /// Changes a caller's state.
    fn change(&mut self, key: Key, change: set::Change, now: Micros) -> set::Counted {
        for _ in 0..ATTEMPTS {
            let (mut set, number) = self.get(key);
            let counted = set::change(&mut set, &self.ban, key.hash, now, change);
            let mut bytes = vec![0; set::SIZE * 8];
            for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(&set) {
                *bytes = word.to_le_bytes();
            }
            if self.data.swap(self.names.slot(key), &bytes, number) {
                one_more(&self.traffic.writes);
                return counted;
            }
            one_more(&self.traffic.conflicts);
        }
        one_more(&self.traffic.exhausted);
        set::Counted::default()
    }
}

impl Bans for Shared {
    fn left(&mut self, key: Key, now: Micros) -> Micros {
        if now >= self.stale {
            self.learn(None, now);
        }
        if now >= self.record.latest {
            return 0;
        }
        let (place, epoch) = (self.claim(key, now), self.record.epoch);
        if self.lines.get(place).is_some_and(|line| line.epoch != epoch) {
            let until = set::until(&self.get(key).0, key.hash);
            let line = self.lines.get_mut(place).into_iter();
            line.for_each(|line| (line.until, line.epoch) = (until, epoch));
        }
        self.lines.get(place).map_or(0, |line| self.ban.left(line.until, now))
    }

    fn refused(&mut self, key: Key, now: Micros) {
        let place = self.claim(key, now);
        let Some(line) = self.lines.get_mut(place) else { return };
        line.refusals += 1;
        if !line.listed {
            line.listed = true;
            self.list.push(place);
        }
        if line.refusals + line.recent >= self.ban.after {
            self.pass_on(place, now);
        }
    }

    fn set(&mut self, key: Key, length: Micros, now: Micros) -> bool {
        self.set_by_operator(key, length, now)
    }

    fn tidy(&mut self, now: Micros) {
        for place in std::mem::take(&mut self.list) {
            self.pass_on(place, now);
            self.lines.get_mut(place).into_iter().for_each(|line| line.listed = false);
        }
    }

    fn begun(&mut self) -> u64 {
        std::mem::take(&mut self.begun)
    }
}
