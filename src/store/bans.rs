//! The bans of one rule, in its scope.
//!
//! Callers lie in sets, which are values of shared data, or of a map of the worker for a `local`
//! rule. A worker gathers refusals and counts them with its timer, or at once if they are enough
//! for a ban. Twenty times a second it reads a record with the end of the ban that ends last and
//! the number of bans begun. So it reads no set if no caller is banned, and otherwise a set once
//! for each caller until the next ban. For a `global` rule the authority of the fleet counts the
//! refusals, and its replies are stored in the sets of the gateway. While it is unavailable the
//! gateway counts alone.

use std::rc::Rc;

use super::backend::BanAuthority;
use super::question::{Question, Refusals};
use super::replies::{BanReply, Replies};
use super::slots::names::Names;
use super::slots::{ATTEMPTS, HOST};
use super::slots::{Traffic, one_more};
use super::stores::Stores;
use super::usage::{Order, OrderError};
use diana_policy::ban::set::{self, Change, Changed};
use diana_policy::key::Key;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, SECOND};
use diana_policy::words;
use diana_policy::{Ban, Memory, Scope};

/// How old a worker's copy of the record may be.
const STALE: Micros = SECOND / 20;

/// Callers that a worker remembers at most.
const LINES: usize = 4096;

/// A caller in the memory of a worker.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    key: Key,
    /// The end of its ban, as read at this epoch of the record.
    until: Micros,
    epoch: u64,
    /// Refusals that were not counted yet.
    refusals: u64,
    /// When the authority was last asked about it.
    queried_at: Micros,
}

/// The bans of one rule.
pub struct Bans {
    ban: Ban,
    fingerprint: u64,
    data: Rc<dyn SharedData>,
    traffic: Rc<Traffic>,
    names: Names,
    keys: usize,
    /// The number of refusals of a caller that is counted at once; fewer wait for the timer.
    at_once: u64,
    /// The record as last read: its number of changes, which is at least one.
    epoch: u64,
    /// The end of the ban that ends last, by the record.
    latest_end: Micros,
    /// When to read the record again.
    stale_at: Micros,
    lines: Vec<Line>,
    /// Whether a line may have refusals that were not counted.
    has_uncounted: bool,
    /// Bans that began here since they were last reported.
    pub begun: u64,
    /// The authority of the fleet, if it counts the refusals.
    fleet: Option<Box<dyn BanAuthority>>,
    /// Whether an operator may end bans through another gateway.
    may_be_reset: bool,
}

/// The memory of the bans of a rule with this scope and number of callers.
#[must_use]
pub fn memory(scope: Scope, callers: usize) -> Memory {
    let lines = (callers.min(LINES) * size_of::<Line>()) as u64;
    let sets = set::number(callers) * (HOST + set::SIZE as u64);
    let (worker, shared) = if scope == Scope::Local { (lines + sets, 0) } else { (lines, sets) };
    Memory { worker, shared }
}

impl Bans {
    /// The bans of the rule with this fingerprint and number of callers. With `fleet` that
    /// authority counts the refusals.
    #[must_use]
    pub fn new(
        ban: Ban,
        scope: Scope,
        rule: u64,
        keys: usize,
        fleet: Option<Box<dyn BanAuthority>>,
        stores: &mut Stores<'_>,
    ) -> Bans {
        let fingerprint = ban.fingerprint(rule);
        let (data, traffic) = stores.data_of_bans(scope, fingerprint);
        Bans {
            ban,
            fingerprint,
            data,
            traffic,
            names: Names::new(&stores.namespace, fingerprint, keys),
            keys,
            at_once: if scope == Scope::Local { 1 } else { ban.after },
            epoch: 0,
            latest_end: 0,
            stale_at: 0,
            lines: Vec::new(),
            has_uncounted: false,
            begun: 0,
            may_be_reset: stores.resets_bans && fleet.is_some(),
            fleet,
        }
    }

    /// Returns the ticks for which a caller is still banned. Once a second, also asks the authority
    /// about a caller that is not: a request under a lease causes no question, and would miss a ban
    /// that began in another gateway.
    pub fn left(&mut self, key: Key, now: Micros) -> Micros {
        let left = self.cached_left(key, now);
        if self.fleet.is_none() || left > 0 && !self.may_be_reset {
            return left;
        }
        let index = self.claim(key, now);
        let Some(line) = self.lines.get_mut(index) else { return left };
        if now.saturating_sub(line.queried_at) < SECOND {
            return left;
        }
        line.queried_at = now;
        // Another gateway may have ended the ban, so that the request asks the authority, too.
        if self.send_to_fleet(key, 0) { 0 } else { left }
    }

    /// Remaining ticks of a ban that the gateway knows of, for a request that does not ask the authority. Zero unless
    /// [`Bans::left`] leaves requests to it.
    pub fn known_left(&mut self, key: Key, now: Micros) -> Micros {
        if self.may_be_reset { self.cached_left(key, now) } else { 0 }
    }

    /// Counts refusals by the rule.
    pub fn count(&mut self, key: Key, refusals: u64, now: Micros) {
        let index = self.claim(key, now);
        let Some(line) = self.lines.get_mut(index) else { return };
        line.refusals += refusals;
        self.has_uncounted = true;
        if line.refusals >= self.at_once {
            self.report_refusals(index, now);
        }
    }

    /// The question to the authority whether a caller is banned, or about an operator's order to ban
    /// it for `sets` ticks. `None` if the gateway counts.
    #[must_use]
    pub fn ask(&self, key: Key, sets: Option<Micros>) -> Option<Question> {
        let question = self.fleet.as_ref()?.question(key);
        Some(Question::Ban(Refusals { sets, ..question }))
    }

    /// Reads the reply to a question. Returns the ticks for which the caller is still banned.
    pub fn on_reply(&mut self, key: Key, replies: &Replies, now: Micros) -> Micros {
        let reply = replies.of_ban(self.fingerprint, key);
        reply.map_or(0, |reply| self.apply_reply(key, &reply, now))
    }

    /// Carries out an order of an operator, or reads the authority's reply to its question. Returns
    /// the ticks for which the caller is banned after it, or why it is not carried out.
    ///
    /// # Errors
    /// If there is no room for the ban, or no reply.
    pub fn inquire(
        &mut self,
        key: Key,
        order: Order,
        replies: &Replies,
        now: Micros,
    ) -> Result<Micros, OrderError> {
        let length = order.sets();
        if self.fleet.is_none() {
            if length.is_some_and(|length| !self.set_ban(key, length, now)) {
                return Err(OrderError::NoRoom);
            }
            return Ok(self.left(key, now));
        }
        let reply = replies.of_ban(self.fingerprint, key).ok_or(OrderError::Unanswered)?;
        if reply.overflow && matches!(order, Order::Ban(_)) {
            return Err(OrderError::NoRoom);
        }
        if length.is_some() {
            self.set_ban(key, reply.left, now);
        }
        Ok(reply.left)
    }

    /// Counts the gathered refusals. Due every 100 ms. Returns the bans that began since the last
    /// call.
    pub fn maintain(&mut self, now: Micros) -> u64 {
        if std::mem::take(&mut self.has_uncounted) {
            (0..self.lines.len()).for_each(|index| self.report_refusals(index, now));
        }
        std::mem::take(&mut self.begun)
    }

    /// Stores the state of a ban at the authority. Returns the ticks for which the caller is still
    /// banned.
    fn apply_reply(&mut self, key: Key, reply: &BanReply, now: Micros) -> Micros {
        let left = self.ban.left(now.saturating_add(reply.left), now);
        let known = self.cached_left(key, now);
        // Two replies about one ban differ a little, since their delays differ.
        let differs = (left > 0) != (known > 0) || left.abs_diff(known) > SECOND;
        if differs && (left > 0 || self.may_be_reset) {
            self.set_ban(key, left, now);
        }
        self.begun += u64::from(reply.begins);
        left
    }

    /// Bans a caller for `length` ticks, or ends its ban if that is 0. Returns true if there was
    /// room for that.
    fn set_ban(&mut self, key: Key, length: Micros, now: Micros) -> bool {
        let until = now.saturating_add(length);
        let change = if length == 0 { Change::Reset } else { Change::Ban(until) };
        self.change(key, change, now) == until || length == 0
    }

    /// Ticks for which a caller is still banned as far as the gateway knows.
    fn cached_left(&mut self, key: Key, now: Micros) -> Micros {
        self.refresh_record(None, now);
        if now >= self.latest_end {
            return 0;
        }
        let index = self.claim(key, now);
        let Some(line) = self.lines.get_mut(index) else { return 0 };
        if line.epoch != self.epoch {
            let set = self.data.get(self.names.slot(key));
            line.until = set.map_or(0, |(set, _)| set::until(&set, key.hash));
            line.epoch = self.epoch;
        }
        self.ban.left(line.until, now)
    }

    /// The index of a caller's line. Replaces the line of another caller, and counts its refusals
    /// first.
    fn claim(&mut self, key: Key, now: Micros) -> usize {
        self.lines.resize(self.keys.clamp(1, LINES), Line::default());
        let index = self.line_index(key);
        if self.lines.get(index).is_some_and(|line| line.key != key) {
            self.report_refusals(index, now);
            if let Some(line) = self.lines.get_mut(index) {
                // The caller's first request asks the authority itself, unless the gateway knows of
                // a ban. Then `left` asks at once, since another gateway may have ended the ban.
                *line = Line {
                    key,
                    queried_at: if self.may_be_reset { 0 } else { now },
                    ..Line::default()
                };
            }
        }
        index
    }

    /// Where the line of a caller can be.
    fn line_index(&self, key: Key) -> usize {
        (key.hash % self.lines.len().max(1) as u64) as usize
    }

    /// Counts the refusals of a line at the authority, or in the gateway.
    fn report_refusals(&mut self, index: usize, now: Micros) {
        let Some(line) = self.lines.get_mut(index) else { return };
        let (key, refusals) = (line.key, std::mem::take(&mut line.refusals));
        if refusals > 0 && !self.send_to_fleet(key, refusals) {
            self.change(key, Change::Count(refusals), now);
        }
    }

    /// Counts refusals at the authority; with zero, only asks it about the caller. Returns false if
    /// the gateway counts.
    fn send_to_fleet(&self, caller: Key, refusals: u64) -> bool {
        self.fleet.as_ref().is_some_and(|fleet| fleet.count(caller, refusals))
    }

    /// Changes the state of a caller for all workers. Returns the end of its ban, 0 if there was
    /// none.
    fn change(&mut self, key: Key, change: Change, now: Micros) -> Micros {
        self.refresh_record(None, now);
        let Changed { begins, until } = self.write(key, change, now);
        self.begun += u64::from(begins);
        // The record lacks this ban if its worker ended before it wrote the record, or if a value
        // was corrupt.
        let is_missing = until > self.latest_end && self.ban.left(until, now) > 0;
        if begins || is_missing || !matches!(change, Change::Count(_)) {
            self.refresh_record(Some(until), now);
        }
        let (index, epoch) = (self.line_index(key), self.epoch);
        if let Some(line) = self.lines.get_mut(index).filter(|line| line.key == key) {
            *line = Line { until, epoch, refusals: 0, ..*line };
        }
        until
    }

    /// Changes a caller's set. Has no effect if other workers won `ATTEMPTS` races.
    fn write(&mut self, key: Key, change: Change, now: Micros) -> Changed {
        for _ in 0..ATTEMPTS {
            let (set, number) = self.data.get(self.names.slot(key)).unzip();
            let mut set = set.unwrap_or_default();
            let changed = set::change(&mut set, &self.ban, key.hash, now, change);
            if self.data.swap(self.names.slot(key), &set, number) {
                one_more(&self.traffic.writes);
                return changed;
            }
            one_more(&self.traffic.conflicts);
        }
        one_more(&self.traffic.exhausted);
        Changed::default()
    }

    /// Reads the record if the copy is too old. With the new end of a ban, also writes the record,
    /// so that all workers read the caller's set again.
    fn refresh_record(&mut self, new_end: Option<Micros>, now: Micros) {
        if new_end.is_none() && now < self.stale_at {
            return;
        }
        self.stale_at = now.saturating_add(STALE);
        for _ in 0..ATTEMPTS {
            let name = self.names.count();
            // As many words as other records have, so that there is one function for all of them.
            let ([sets, epoch, latest, ..], number) = words::read::<8>(&*self.data, name);
            let more = u64::from(sets == 0 || new_end.is_some());
            let latest = latest.max(new_end.unwrap_or(0));
            let epoch = epoch.wrapping_add(more);
            let sets = if sets == 0 { set::number(self.keys) } else { sets };
            let words = [sets, epoch, latest, 0, 0, 0, 0, 0];
            if more == 0 || words::write(words, &*self.data, name, number) {
                (self.epoch, self.latest_end) = (epoch, latest);
                self.names.recount(sets);
                return;
            }
            one_more(&self.traffic.conflicts);
        }
    }
}
