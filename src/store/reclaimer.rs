//! Clears the values of a removed rule from shared data, where a value can be emptied but not
//! deleted.
//!
//! Live state must survive: another worker may not have the new configuration yet, another root may
//! have the same rule, and the rule may return. The values are therefore checked when all state
//! should have expired. Only expired ones are emptied, by compare-and-swap.

use std::rc::Rc;
use std::sync::Arc;

use super::gateway_leases;
use super::in_flight_slots;
use super::slots::Found;
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
pub struct SlotReclaimer {
    data: Rc<dyn SharedData>,
    namespace: Rc<str>,
    fingerprint: u64,
    kind: ReclaimedKind,
    names: Names,
    /// When to continue.
    due: Micros,
    /// The next value to check.
    next_index: u64,
    /// Whether this pass has found live state.
    in_use: bool,
    /// When all state found so far has expired.
    over: Micros,
    times: u8,
}

enum ReclaimedKind {
    Callers(Arc<dyn Algorithm>),
    Leases,
    InFlightSlots,
    Bans(Ban),
}

impl SlotReclaimer {
    /// The values of a rule's callers.
    pub fn of_callers(
        namespace: Rc<str>,
        data: Rc<dyn SharedData>,
        fingerprint: u64,
        algorithm: Arc<dyn Algorithm>,
        now: Micros,
    ) -> SlotReclaimer {
        let kind = if algorithm.properties().is_held {
            ReclaimedKind::InFlightSlots
        } else {
            ReclaimedKind::Callers(algorithm)
        };
        SlotReclaimer::new(namespace, data, fingerprint, kind, now)
    }

    /// The leases of a rule that Redis counts.
    pub fn of_leases(
        namespace: Rc<str>,
        data: Rc<dyn SharedData>,
        fingerprint: u64,
        now: Micros,
    ) -> SlotReclaimer {
        SlotReclaimer::new(namespace, data, fingerprint, ReclaimedKind::Leases, now)
    }

    /// The values of a rule's bans.
    pub fn of_bans(
        namespace: Rc<str>,
        data: Rc<dyn SharedData>,
        rule: u64,
        ban: Ban,
        now: Micros,
    ) -> SlotReclaimer {
        SlotReclaimer::new(namespace, data, ban.fingerprint(rule), ReclaimedKind::Bans(ban), now)
    }

    fn new(
        namespace: Rc<str>,
        data: Rc<dyn SharedData>,
        fingerprint: u64,
        kind: ReclaimedKind,
        now: Micros,
    ) -> SlotReclaimer {
        let names = Names::new(&namespace, fingerprint, 1);
        let due = now.saturating_add(kind.lifetime());
        let (next_index, in_use, over, times) = (0, false, 0, 0);
        SlotReclaimer {
            data,
            namespace,
            fingerprint,
            kind,
            names,
            due,
            next_index,
            in_use,
            over,
            times,
        }
    }

    /// The same, or `None` if there are no values.
    #[must_use]
    pub fn if_present(mut self) -> Option<SlotReclaimer> {
        let is_there = self.data.get(self.names.count()).is_some()
            || self.data.get(self.names.slot(Key::ALL)).is_some();
        is_there.then_some(self)
    }

    /// Returns true if both are the same values of one rule.
    #[must_use]
    pub fn is_of(&self, other: &SlotReclaimer) -> bool {
        let [kind, of] = [&self.kind, &other.kind].map(std::mem::discriminant);
        self.fingerprint == other.fingerprint && self.namespace == other.namespace && kind == of
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
        if self.next_index == 0 {
            // The rule's first worker has set the number of slots.
            let known = self.data.get(self.names.count()).map(|(bytes, _)| bytes);
            let number = known.as_deref().and_then(|bytes| bytes.first_chunk());
            self.names.recount(number.map_or(1, |bytes| u64::from_le_bytes(*bytes)));
        }
        for _ in 0..PIECE {
            let name = match self.kind {
                ReclaimedKind::Leases => self.names.nth_line(self.next_index),
                _ => self.names.nth(self.next_index),
            };
            let Some(name) = name else { return self.next_pass(now.mono) };
            self.next_index += 1;
            let Some((bytes, number)) = self.data.get(name) else { continue };
            let found = match &self.kind {
                ReclaimedKind::Leases => gateway_leases::classify(&bytes, now.mono),
                ReclaimedKind::Callers(algorithm) => slot::classify(bytes, &**algorithm, now),
                ReclaimedKind::InFlightSlots => {
                    in_flight_slots::classify(bytes, &self.namespace, &*self.data, now.mono)
                }
                // Otherwise it is empty, or the rule has not written it.
                ReclaimedKind::Bans(_) if bytes.len() != set::SIZE => Found::Empty,
                ReclaimedKind::Bans(ban) if set::counts(&bytes, ban, now.mono) => Found::InUse(0),
                ReclaimedKind::Bans(_) => Found::Over(Vec::new()),
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
    fn next_pass(&mut self, now: Micros) -> bool {
        self.times += 1;
        self.next_index = 0;
        self.due = now.saturating_add(self.kind.lifetime()).max(std::mem::take(&mut self.over));
        std::mem::take(&mut self.in_use) && self.times < TIMES
    }
}

impl ReclaimedKind {
    /// Ticks in which all present state expires, unless clocks are set.
    fn lifetime(&self) -> Micros {
        let longest = match self {
            ReclaimedKind::Callers(algorithm) => algorithm.properties().window,
            ReclaimedKind::InFlightSlots | ReclaimedKind::Leases => 0,
            ReclaimedKind::Bans(ban) => [ban.max, ban.within, ban.within, ban.halve_after]
                .into_iter()
                .fold(0, Micros::saturating_add),
        };
        // Leases expire within a second.
        longest.saturating_add(2 * SECOND)
    }
}
