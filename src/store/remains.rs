//! Clears the values of a removed rule from shared data, where a value can be emptied but not
//! deleted.
//!
//! Live state must survive: another worker may not have the new configuration yet, another root may
//! have the same rule, and the rule may return. The values are therefore checked when all state
//! should have expired. Only expired ones are emptied, by compare-and-swap.

use std::rc::Rc;

use super::found::Found;
use super::places;
use super::slots::names::Names;
use super::slots::slot;
use diana_algorithm::Algorithm;
use diana_policy::Ban;
use diana_policy::ban::set;
use diana_policy::key::Key;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, Now, SECOND};

/// Values checked at once, and the pause before the next ones.
const PIECE: usize = 64;
const PACE: Micros = SECOND / 100;

/// Gives up after this many passes that find live state: its user clears it later.
const TIMES: u8 = 3;

/// The values of one rule.
pub struct Remains {
    data: Rc<dyn SharedData>,
    namespace: Rc<str>,
    fingerprint: u64,
    kind: RemainsKind,
    names: Names,
    /// When to continue.
    due: Micros,
    /// The next value to check.
    place: u64,
    /// Whether this pass has found live state.
    in_use: bool,
    /// When all state found so far has expired.
    over: Micros,
    times: u8,
}

enum RemainsKind {
    Callers(Rc<dyn Algorithm>),
    Places,
    Bans(Ban),
}

impl Remains {
    /// The values of a rule's callers.
    pub fn of_callers(
        namespace: Rc<str>,
        data: Rc<dyn SharedData>,
        fingerprint: u64,
        algorithm: Rc<dyn Algorithm>,
        now: Micros,
    ) -> Remains {
        let kind = if algorithm.properties().is_held {
            RemainsKind::Places
        } else {
            RemainsKind::Callers(algorithm)
        };
        Remains::new(namespace, data, fingerprint, kind, now)
    }

    /// The values of a rule's bans.
    pub fn of_bans(
        namespace: Rc<str>,
        data: Rc<dyn SharedData>,
        rule: u64,
        ban: Ban,
        now: Micros,
    ) -> Remains {
        Remains::new(namespace, data, ban.fingerprint(rule), RemainsKind::Bans(ban), now)
    }

    fn new(
        namespace: Rc<str>,
        data: Rc<dyn SharedData>,
        fingerprint: u64,
        kind: RemainsKind,
        now: Micros,
    ) -> Remains {
        let names = Names::new(&namespace, fingerprint, 1);
        let due = now.saturating_add(kind.lasts());
        let (place, in_use, over, times) = (0, false, 0, 0);
        Remains { data, namespace, fingerprint, kind, names, due, place, in_use, over, times }
    }

    /// The same, or `None` if there are no values.
    #[must_use]
    pub fn if_there(mut self) -> Option<Remains> {
        let is_there = self.data.get(self.names.count()).is_some()
            || self.data.get(self.names.slot(Key::ALL)).is_some();
        is_there.then_some(self)
    }

    /// Returns true if both are of the same rule.
    #[must_use]
    pub fn is_of(&self, other: &Remains) -> bool {
        self.fingerprint == other.fingerprint && self.namespace == other.namespace
    }

    /// When to continue.
    #[must_use]
    pub fn due(&self) -> Micros {
        self.due
    }

    /// Checks some values, if due. Returns false when it is finished.
    pub fn work(&mut self, now: Now) -> bool {
        if now.mono < self.due {
            return true;
        }
        if self.place == 0 {
            // The rule's first worker has set the number of slots.
            let known = self.data.get(self.names.count()).map(|(bytes, _)| bytes);
            let number = known.as_deref().and_then(|bytes| bytes.first_chunk());
            self.names.recount(number.map_or(1, |bytes| u64::from_le_bytes(*bytes)));
        }
        for _ in 0..PIECE {
            let Some(name) = self.names.nth(self.place) else { return self.begin_again(now.mono) };
            self.place += 1;
            let Some((bytes, number)) = self.data.get(name) else { continue };
            let found = match &self.kind {
                RemainsKind::Callers(algorithm) => slot::look(bytes, &**algorithm, now),
                RemainsKind::Places => places::look(bytes, &self.namespace, &*self.data, now.mono),
                // Otherwise it is empty, or the rule has not written it.
                RemainsKind::Bans(_) if bytes.len() != set::SIZE => Found::Empty,
                RemainsKind::Bans(ban) if set::counts(&bytes, ban, now.mono) => Found::InUse(0),
                RemainsKind::Bans(_) => Found::Over(Vec::new()),
            };
            self.in_use |= match found {
                Found::Empty => false,
                Found::InUse(over) => {
                    self.over = self.over.max(over);
                    true
                }
                Found::Over(empty) => !self.data.swap(name, &empty, Some(number)),
            };
        }
        self.due = now.mono.saturating_add(PACE);
        true
    }

    /// Ends a pass. Returns true if another one is necessary, since it has found live state.
    fn begin_again(&mut self, now: Micros) -> bool {
        self.times += 1;
        self.place = 0;
        self.due = now.saturating_add(self.kind.lasts()).max(std::mem::take(&mut self.over));
        std::mem::take(&mut self.in_use) && self.times < TIMES
    }
}

impl RemainsKind {
    /// Ticks in which all present state expires, unless clocks are set.
    fn lasts(&self) -> Micros {
        let longest = match self {
            RemainsKind::Callers(algorithm) => algorithm.properties().window,
            RemainsKind::Places => 0,
            RemainsKind::Bans(ban) => [ban.max, ban.within, ban.within, ban.halve_after]
                .into_iter()
                .fold(0, Micros::saturating_add),
        };
        // Leases expire within a second.
        longest.saturating_add(2 * SECOND)
    }
}
