//! What the gateway knows of one caller, and how it is changed.

use std::rc::Rc;

use super::names::{Names, bucket};
use super::outstanding::{self, Outstanding};
use super::slots::{ATTEMPTS, Draft, Slots};
use super::traffic::Traffic;
use crate::algorithm::Algorithm;
use crate::decision::{Decision, Retry};
use crate::key::Key;
use crate::port::SharedData;
use crate::store::CounterSpec;
use crate::store::lease::{LIFE, Lease};
use crate::store::state::State;
use crate::time::{Micros, Now};

/// Where a caller is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// In its slot.
    Slot,
    /// In its slot once it is charged.
    New,
    /// In a bucket, since its slot is full of live callers.
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

/// One caller as the gateway knew it when this worker looked, and what a charge writes in its place.
pub(crate) struct Look {
    pub(super) key: Key,
    /// When this worker looked, and the instant that is decided about.
    pub(super) at: Now,
    pub(super) now: Now,
    slot: Draft,
    bucket: Draft,
    pub(super) home: Home,
    /// What is out on lease.
    pub(super) outstanding: Outstanding,
    /// The state to decide from, and the state after the charge.
    pub(super) state: State,
    pub(super) after: State,
    /// The decision about one request, as long as the state after is what it charges.
    pub(super) decided: Option<Decision>,
    /// How many compare-and-swaps were lost.
    pub(super) lost: usize,
}

impl Look {
    /// Nobody has been looked at yet.
    pub(super) fn new(key: Key, at: Now, words: usize) -> Look {
        Look {
            key,
            at,
            now: at,
            slot: Draft::default(),
            bucket: Draft::default(),
            home: Home::New,
            outstanding: Outstanding::default(),
            state: State::nobody(words),
            after: State::nobody(words),
            decided: None,
            lost: 0,
        }
    }

    pub(super) fn is_overflow(&self) -> bool {
        self.home == Home::Overflow
    }

    /// Whether one more attempt may be made to write.
    pub(super) fn may_try(&self) -> bool {
        self.lost < ATTEMPTS
    }
}

/// How callers are looked at. A look costs one question, or two where buckets are in use.
pub(super) struct View {
    slots: Slots,
    algorithm: Rc<dyn Algorithm>,
    window: Micros,
    names: Names,
    scratch: Box<[u64]>,
}

impl View {
    pub(super) fn new(
        spec: &CounterSpec,
        namespace: &str,
        data: Rc<dyn SharedData>,
        traffic: Rc<Traffic>,
    ) -> View {
        let algorithm = spec.algorithm.clone();
        View {
            slots: Slots::new(data, traffic, algorithm.words()),
            window: algorithm.policy().1,
            names: Names::new(namespace, spec.identity, spec.keys),
            scratch: vec![0; algorithm.words()].into(),
            algorithm,
        }
    }

    /// Permits left.
    pub(super) fn left(&self, look: &Look) -> u64 {
        self.algorithm.remaining(&look.state, look.now)
    }

    /// Permits left after the charge, those included that a lease has left.
    pub(super) fn left_after(&mut self, look: &Look, lease: Option<&mut Lease>) -> u64 {
        let (block, left) = lease.map(|lease| lease.block()).unwrap_or_default();
        self.algorithm.refund(&look.after, block.receipt, left, &mut self.scratch);
        self.algorithm.remaining(&self.scratch, look.now)
    }

    /// Asks about the caller.
    pub(super) fn look(&mut self, look: &mut Look) {
        look.slot = self.get_slot(look);
        look.decided = None;
        let Look { key, at, slot: Draft { slot, .. }, state, .. } = look;
        let (algorithm, scratch) = (&*self.algorithm, &mut self.scratch);
        let now = slot.watermark().judging(*at, self.window);
        look.now = now;
        if let Some(place) = slot.find(key.hash) {
            look.home = Home::Slot;
            look.outstanding = Outstanding::unpack(slot.load(place, state), now.mono);
            look.outstanding.settle(algorithm, state, scratch, now.mono);
            if look.outstanding.was_any() && algorithm.expires(state, now) <= now.mono {
                look.outstanding.forget();
            }
            return;
        }
        let expected = self.names.callers();
        if slot.len() >= expected {
            slot.sweep(algorithm, now, state, scratch);
        }
        look.home = if slot.len() < 2 * expected { Home::New } else { Home::Overflow };
        look.outstanding = Outstanding::unpack(0, now.mono);
        state.fill(0);
        let spilled = slot.spilled();
        if look.is_overflow() || now.mono < spilled {
            self.look_into_bucket(look);
        }
    }

    /// Takes the usage of the caller's bucket, which is at least its own.
    fn look_into_bucket(&mut self, look: &mut Look) {
        look.bucket = self.slots.get(self.names.bucket(look.key));
        if let Some(place) = look.bucket.slot.find(bucket(look.key)) {
            look.bucket.slot.load(place, &mut look.state);
        }
    }

    /// Takes back what a lease has left. Whether there was anything to take back.
    pub(super) fn give_back(&mut self, look: &mut Look, lease: &Lease) -> bool {
        let (block, left) = lease.block();
        if look.home != Home::Slot || block.permits == 0 {
            return false;
        }
        if let Some(outstanding) = look.outstanding.without(block.permits, block.term) {
            look.outstanding = outstanding;
            self.algorithm.refund(&look.state, block.receipt, left, &mut self.scratch);
            look.state.swap_with_slice(&mut self.scratch);
        } else {
            // It comes late, and was not held back since it was over.
            self.take_back(look, block.receipt, left, outstanding::over(block.term));
        }
        true
    }

    /// Why a request of `cost` permits is refused for `retry` ticks.
    pub(super) fn loan(&mut self, look: &Look, cost: u64, retry: Micros) -> Loan {
        let out = look.outstanding.out();
        if out > 0 {
            let ends = look.outstanding.ends().saturating_sub(look.now.mono).max(1);
            match self.retry_without(look, out, cost) {
                Some(0) => return Loan::Out(ends),
                Some(without) if without < retry => return Loan::None(without),
                _ => {}
            }
        }
        // A bucket does not drain below what is out, so it may have been charged too much by what
        // drains while a lease lives.
        let drains = self.algorithm.most_out() < u64::MAX && retry <= 2 * LIFE;
        if drains && look.outstanding.was_any() { Loan::Gathers(retry) } else { Loan::None(retry) }
    }

    /// Ticks until a request would be admitted if `out` permits had come back.
    fn retry_without(&mut self, look: &Look, out: u64, cost: u64) -> Option<Micros> {
        if self.left(look).saturating_add(out) >= cost {
            return Some(0);
        }
        let receipt = self.algorithm.receipt(&look.state);
        let mut without = look.state.clone();
        self.algorithm.refund(&look.state, receipt, out, &mut without);
        match self.algorithm.step(&without, look.now, cost, &mut self.scratch) {
            Decision::Refuse { retry: Retry::After(ticks) } => Some(ticks),
            Decision::Refuse { retry: Retry::Never } => None,
            Decision::Admit { .. } => Some(0),
        }
    }

    /// Takes back permits that were charged under `receipt` at `since`.
    pub(super) fn take_back(&mut self, look: &mut Look, receipt: u64, permits: u64, since: Micros) {
        self.algorithm.take_back(&look.state, receipt, permits, since, &mut self.scratch);
        look.state.swap_with_slice(&mut self.scratch);
    }

    /// Writes the state after the charge, with a block that goes out on lease. Whether nobody was faster.
    pub(super) fn write(&mut self, look: &mut Look, block: u64) -> bool {
        if look.is_overflow() {
            return self.write_bucket(look);
        }
        look.slot.slot.put(look.key.hash, look.outstanding.with(block).pack(), &look.after);
        self.swap_slot(look)
    }

    /// Writes the state as it was found, with what was given back.
    pub(super) fn keep(&mut self, look: &mut Look) -> bool {
        std::mem::swap(&mut look.state, &mut look.after);
        let written = self.write(look, 0);
        std::mem::swap(&mut look.state, &mut look.after);
        written
    }

    /// Whether the caller's state is still the one after the charge. The next write is on top of what is
    /// there now.
    pub(super) fn is_untouched(&mut self, look: &mut Look) -> bool {
        look.slot = self.get_slot(look);
        let (draft, hash) = if look.is_overflow() {
            look.bucket = self.slots.get(self.names.bucket(look.key));
            (&look.bucket, bucket(look.key))
        } else {
            (&look.slot, look.key.hash)
        };
        let Some(place) = draft.slot.find(hash) else { return false };
        draft.slot.load(place, &mut self.scratch);
        *self.scratch == *look.after
    }

    /// Charges the bucket, and then sees to it that whoever finds room for the caller in the
    /// meantime looks into the bucket after the charge: its write would fail.
    fn write_bucket(&mut self, look: &mut Look) -> bool {
        look.bucket.slot.put(bucket(look.key), 0, &look.after);
        if !self.slots.swap(self.names.bucket(look.key), &look.bucket) {
            look.lost += 1;
            return false;
        }
        // Should the wall clock be set back, a window lasts longer than it seems now, though no longer
        // than one more.
        let longest = look.now.mono.saturating_add(self.window);
        let until = self.algorithm.expires(&look.after, look.now).max(longest);
        while look.may_try() {
            look.slot.slot.spill(until);
            if self.swap_slot(look) {
                return true;
            }
            look.slot = self.get_slot(look);
            if look.slot.slot.find(look.key.hash).is_some() {
                // It has room of its own by now, without this charge.
                return false;
            }
        }
        false
    }

    fn swap_slot(&mut self, look: &mut Look) -> bool {
        let written = self.slots.swap(self.names.slot(look.key), &look.slot);
        look.lost += usize::from(!written);
        written
    }

    fn get_slot(&mut self, look: &mut Look) -> Draft {
        let found = self.slots.get(self.names.slot(look.key));
        if found.is_new() && look.key != Key::ALL {
            let own = self.names.slots();
            let agreed = self.slots.agree(self.names.count(), own, &mut look.lost);
            if self.names.recount(agreed) {
                return self.slots.get(self.names.slot(look.key));
            }
        }
        found
    }
}
