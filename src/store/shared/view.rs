//! What the gateway knows of one caller, and how it is changed.

use std::rc::Rc;

use super::lent::{self, Lent};
use super::names::{Names, bucket};
use super::slots::{Draft, Slots};
use super::traffic::Traffic;
use crate::algorithm::Algorithm;
use crate::decision::{Decision, Retry};
use crate::key::Key;
use crate::port::SharedData;
use crate::store::Meter;
use crate::store::lease::{LIFE, Lease};
use crate::time::{Micros, Now};

/// Where a caller is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// In his slot.
    Slot,
    /// In his slot once he is charged.
    New,
    /// In a bucket, since his slot is full of live callers.
    Overflow,
}

/// Why permits are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loan {
    /// They were used, and come back in so many ticks.
    None(Micros),
    /// Others hold them, for so many ticks at most.
    Out(Micros),
    /// They are about to come back one by one, and might have come already.
    Gathers(Micros),
}

/// See the module. A look costs one question, or two where buckets are in use.
pub(super) struct View {
    pub(super) slots: Slots,
    algorithm: Rc<dyn Algorithm>,
    window: Micros,
    names: Names,
    key: Key,
    now: Now,
    slot: Draft,
    bucket: Draft,
    home: Home,
    lent: Lent,
    state: Box<[u64]>,
    scratch: Box<[u64]>,
}

impl View {
    pub(super) fn new(
        meter: &Meter,
        namespace: &str,
        data: Rc<dyn SharedData>,
        traffic: Rc<Traffic>,
    ) -> View {
        let algorithm = meter.algorithm.clone();
        let nobody = || vec![0; algorithm.words()].into();
        View {
            slots: Slots::new(data, traffic, algorithm.words()),
            window: algorithm.policy().1,
            names: Names::new(namespace, meter.identity, meter.keys),
            key: Key::ALL,
            now: Now::default(),
            slot: Draft::default(),
            bucket: Draft::default(),
            home: Home::New,
            lent: Lent::default(),
            state: nobody(),
            scratch: nobody(),
            algorithm,
        }
    }

    pub(super) fn home(&self) -> Home {
        self.home
    }

    pub(super) fn is_overflow(&self) -> bool {
        self.home == Home::Overflow
    }

    /// The instant to judge at.
    pub(super) fn now(&self) -> Now {
        self.now
    }

    /// What is out on lease.
    pub(super) fn lent(&self) -> Lent {
        self.lent
    }

    /// The state to judge from.
    pub(super) fn state(&self) -> &[u64] {
        &self.state
    }

    /// Permits left.
    pub(super) fn left(&self) -> u64 {
        self.algorithm.remaining(&self.state, self.now)
    }

    /// Permits left in `state`, and in a lease that was charged there.
    pub(super) fn left_of(&mut self, state: &[u64], lease: Option<&mut Lease>) -> u64 {
        let (block, left) = lease.map(|lease| lease.block()).unwrap_or_default();
        self.algorithm.refund(state, block.receipt, left, &mut self.scratch);
        self.algorithm.remaining(&self.scratch, self.now)
    }

    /// Asks about a caller.
    pub(super) fn look(&mut self, key: Key, now: Now) {
        self.key = key;
        self.slot = self.get_slot();
        let View { algorithm, slot: Draft { slot, .. }, state, scratch, .. } = self;
        self.now = slot.floor().judging(now, self.window);
        if let Some(place) = slot.find(key.hash) {
            self.home = Home::Slot;
            self.lent = Lent::unpack(slot.load(place, state), self.now.mono);
            self.lent.settle(&**algorithm, state, scratch, self.now.mono);
            if self.lent.was_any() && algorithm.expires(state, self.now) <= self.now.mono {
                self.lent.forget();
            }
            return;
        }
        let expected = self.names.callers();
        if slot.len() >= expected {
            slot.sweep(&**algorithm, self.now, state, scratch);
        }
        self.home = if slot.len() < 2 * expected { Home::New } else { Home::Overflow };
        self.lent = Lent::unpack(0, self.now.mono);
        state.fill(0);
        let spilled = slot.spilled();
        if self.is_overflow() || self.now.mono < spilled {
            self.look_into_bucket();
        }
    }

    /// Takes the usage of the caller's bucket, which is at least his own.
    fn look_into_bucket(&mut self) {
        self.bucket = self.slots.get(self.names.bucket(self.key));
        if let Some(place) = self.bucket.slot.find(bucket(self.key)) {
            self.bucket.slot.load(place, &mut self.state);
        }
    }

    /// Takes back what a lease has left. Whether there was anything to take back.
    pub(super) fn give_back(&mut self, lease: &Lease) -> bool {
        let (block, left) = lease.block();
        if self.home != Home::Slot || block.permits == 0 {
            return false;
        }
        if let Some(lent) = self.lent.without(block.permits, block.term) {
            self.lent = lent;
            self.algorithm.refund(&self.state, block.receipt, left, &mut self.scratch);
            std::mem::swap(&mut self.state, &mut self.scratch);
        } else {
            // It comes late, and was not held back since it was over.
            self.take_back(block.receipt, left, lent::over(block.term));
        }
        true
    }

    /// Why a request of `cost` permits is refused for `retry` ticks.
    pub(super) fn loan(&mut self, cost: u64, retry: Micros) -> Loan {
        let out = self.lent.out();
        if out > 0 {
            let ends = self.lent.ends().saturating_sub(self.now.mono).max(1);
            match self.retry_without(out, cost) {
                Some(0) => return Loan::Out(ends),
                Some(without) if without < retry => return Loan::None(without),
                _ => {}
            }
        }
        // A bucket does not drain below what is out, so it may have been charged too much by what
        // drains while a lease lives.
        let drains = self.algorithm.most_out() < u64::MAX && retry <= 2 * LIFE;
        if drains && self.lent.was_any() { Loan::Gathers(retry) } else { Loan::None(retry) }
    }

    /// Ticks until a request would be admitted if `out` permits had come back.
    fn retry_without(&mut self, out: u64, cost: u64) -> Option<Micros> {
        if self.left().saturating_add(out) >= cost {
            return Some(0);
        }
        let receipt = self.algorithm.receipt(&self.state);
        let mut without = self.scratch.clone();
        self.algorithm.refund(&self.state, receipt, out, &mut without);
        match self.algorithm.step(&without, self.now, cost, &mut self.scratch) {
            Decision::Refuse { retry: Retry::After(ticks) } => Some(ticks),
            Decision::Refuse { retry: Retry::Never } => None,
            Decision::Admit { .. } => Some(0),
        }
    }

    /// Takes back permits that were charged under `receipt` at `since`.
    pub(super) fn take_back(&mut self, receipt: u64, permits: u64, since: Micros) {
        self.algorithm.take_back(&self.state, receipt, permits, since, &mut self.scratch);
        std::mem::swap(&mut self.state, &mut self.scratch);
    }

    /// Writes a new state, with a block that goes out on lease. Whether nobody was faster.
    pub(super) fn write(&mut self, state: &[u64], block: u64) -> bool {
        if self.is_overflow() {
            return self.write_bucket(state);
        }
        self.slot.slot.put(self.key.hash, self.lent.with(block).pack(), state);
        self.slots.swap(self.names.slot(self.key), &self.slot)
    }

    /// Writes the state as it was found, with what was given back.
    pub(super) fn keep(&mut self) -> bool {
        let state = std::mem::take(&mut self.state);
        let written = self.write(&state, 0);
        self.state = state;
        written
    }

    /// Whether the caller's state is still this one. The next write is on top of what is there now.
    pub(super) fn is_untouched(&mut self, state: &[u64]) -> bool {
        self.slot = self.get_slot();
        let (draft, hash) = if self.is_overflow() {
            self.bucket = self.slots.get(self.names.bucket(self.key));
            (&self.bucket, bucket(self.key))
        } else {
            (&self.slot, self.key.hash)
        };
        let Some(place) = draft.slot.find(hash) else { return false };
        draft.slot.load(place, &mut self.scratch);
        *self.scratch == *state
    }

    /// Charges the bucket, and then sees to it that whoever finds room for the caller in the
    /// meantime looks into the bucket after the charge: his write would fail.
    fn write_bucket(&mut self, state: &[u64]) -> bool {
        self.bucket.slot.put(bucket(self.key), 0, state);
        if !self.slots.swap(self.names.bucket(self.key), &self.bucket) {
            return false;
        }
        // Should the wall clock be set back, a window lasts longer than it seems now, though no longer
        // than one more.
        let longest = self.now.mono.saturating_add(self.window);
        let until = self.algorithm.expires(state, self.now).max(longest);
        while self.slots.may_try() {
            self.slot.slot.spill(until);
            if self.slots.swap(self.names.slot(self.key), &self.slot) {
                return true;
            }
            self.slot = self.get_slot();
            if self.slot.slot.find(self.key.hash).is_some() {
                // He has room of his own by now, without this charge.
                return false;
            }
        }
        false
    }

    fn get_slot(&mut self) -> Draft {
        let found = self.slots.get(self.names.slot(self.key));
        if found.is_new() && self.key != Key::ALL {
            let own = self.names.slots();
            let agreed = self.slots.agree(self.names.count(), own);
            if self.names.recount(agreed) {
                return self.slots.get(self.names.slot(self.key));
            }
        }
        found
    }
}
