//! Bans of a gateway: sets in a fixed number of values of shared data, changed by compare-and-swap.
//!
//! A worker gathers refusals and passes them on with its timer, or at once if they may be enough for
//! a ban. All workers look at one small record twenty times a second: it says when the last ban ends,
//! so that where nobody is banned nothing else is asked, and how many bans have begun, so that what a
//! worker knows of a caller is known until the next one begins.

use std::rc::Rc;

use super::far::Far;
use super::{Bans, set};
use crate::key::Key;
use crate::policy::Ban;
use crate::port::SharedData;
use crate::redis::protocol::{Charge, Opinion};
use crate::store::shared::names::Names;
use crate::store::shared::traffic::{Traffic, one_more};
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
    /// When the fleet was last asked about it.
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
pub(in crate::store) struct Shared {
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
    /// Where the fleet counts, if it does.
    far: Option<Far>,
}

/// Bytes that a worker takes for what it knows of so many callers.
pub(in crate::store) fn bytes(callers: usize) -> u64 {
    (callers.min(LINES) * (size_of::<Line>() + size_of::<usize>())) as u64
}

impl Shared {
    pub(in crate::store) fn new(
        ban: Ban,
        names: Names,
        keys: usize,
        data: Rc<dyn SharedData>,
        traffic: Rc<Traffic>,
        far: Option<Far>,
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
            far,
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

    /// The place of a caller's line, made its.
    fn claim(&mut self, key: Key, now: Micros) -> usize {
        if self.record.sets == 0 {
            self.learn(None, now);
        }
        if self.lines.is_empty() {
            self.lines.resize(self.keys.clamp(1, LINES), NOBODY);
        }
        let place = (key.hash % self.lines.len() as u64) as usize;
        if self.lines.get(place).is_some_and(|line| line.key != key) {
            self.pass_on(place, now);
            if let Some(line) = self.lines.get_mut(place) {
                *line = Line { key, listed: line.listed, looked: now, ..NOBODY };
            }
        }
        place
    }

    /// Asks the fleet about a caller who keeps coming: a request under a lease does not.
    fn look_far(&mut self, key: Key, now: Micros) {
        let place = self.claim(key, now);
        if let (Some(line), Some(far)) = (self.lines.get_mut(place), &self.far)
            && now.saturating_sub(line.looked) >= SECOND
            && self.ban.left(line.until, now) == 0
        {
            line.looked = now;
            far.send(key, 0);
        }
    }

    /// Counts the refusals of a line for all workers.
    fn pass_on(&mut self, place: usize, now: Micros) {
        let Some(line) = self.lines.get_mut(place) else { return };
        let (key, refusals) = (line.key, std::mem::take(&mut line.refusals));
        if refusals == 0 {
            return;
        }
        if self.far.as_ref().is_some_and(|far| far.send(key, refusals)) {
            return;
        }
        let counted = self.change(key, set::Change::Count(refusals), now);
        self.begun += u64::from(counted.begins);
        if counted.begins || self.is_untold(counted.until, now) {
            self.learn(Some(counted.until), now);
        }
        if let Some(line) = self.lines.get_mut(place) {
            (line.until, line.recent) = (counted.until, counted.recent);
            line.epoch = self.record.epoch;
        }
    }

    /// Whether a ban is in force that the record does not tell of: whoever wrote it may have ended before
    /// telling, or either value was spoiled. The caller would be neither banned nor counted.
    fn is_untold(&mut self, until: Micros, now: Micros) -> bool {
        let may_be = self.ban.left(until, now) > 0 && until > self.record.latest;
        if may_be {
            self.learn(None, now);
        }
        may_be && until > self.record.latest
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
        if self.far.is_some() {
            self.look_far(key, now);
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
        if self.far.as_ref().is_some_and(Far::denies) {
            return;
        }
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

    fn tidy(&mut self, now: Micros) -> bool {
        for place in std::mem::take(&mut self.list) {
            self.pass_on(place, now);
            self.lines.get_mut(place).into_iter().for_each(|line| line.listed = false);
        }
        false
    }

    fn question(&self, key: Key) -> Option<Charge> {
        self.far.as_ref().map(|far| far.charge(key, 0))
    }

    fn told(&mut self, key: Key, opinion: &Opinion, now: Micros) -> Micros {
        let until = now.saturating_add(opinion.remaining);
        let (left, recent) = (self.ban.left(until, now), opinion.lease);
        let place = self.claim(key, now);
        let known = self.lines.get(place).is_some_and(|line| self.ban.left(line.until, now) > 0);
        // A look counts nothing, and does not tell.
        let line = self.lines.get_mut(place).filter(|_| recent > 0);
        line.into_iter().for_each(|line| line.recent = recent);
        if left > 0 && !known {
            self.change(key, set::Change::Ban(until), now);
            self.begun += opinion.receipt.min(1);
            self.learn(Some(until), now);
            let (line, epoch) = (self.lines.get_mut(place).into_iter(), self.record.epoch);
            line.for_each(|line| (line.until, line.epoch) = (until, epoch));
        }
        left
    }

    fn begun(&mut self) -> u64 {
        std::mem::take(&mut self.begun)
    }
}
