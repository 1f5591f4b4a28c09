//! The places that requests in flight take, of one rule and all workers together.
//!
//! They are in a fixed number of slots of shared data, changed by compare-and-swap. Each worker has a count of its own
//! for each caller, so that what it holds can be told apart once it has died; it counts as long as the worker says that it
//! lives.
//!
//! A caller without a row, or without room in a slot, shares places. As long as any of those are taken, no caller moves
//! from them to a row. A worker that may have been forgotten takes another number; places under the old number are not
//! counted any more.

mod holders;
mod slot;

use std::cell::RefCell;
use std::rc::Rc;

use super::plans::ByPlan;
use super::slots::names::Names;
use super::slots::traffic::{Traffic, one_more};
use super::slots::{ATTEMPTS, HOST, Slots};
use crate::counter_spec::CounterSpec;
use crate::found::Found;
use diana_policy::Memory;
use diana_policy::key::Key;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, SECOND};
use diana_policy::words;
pub(super) use holders::Holders;
use slot::Slot;

/// Workers that hold places of one caller at a time, as far as memory is foreseen.
const WORKERS: u64 = 8;

/// The memory of a rule: nothing in the workers.
pub(super) fn memory(callers: Option<usize>) -> Memory {
    let [(slots, room), _] = Names::most(callers);
    // Those that found no room are one more.
    let callers = if callers.is_some() { room + 1 } else { 1 };
    Memory { worker: 0, shared: slots * (HOST + slot::bytes(callers, WORKERS)) }
}

/// The places of one rule.
pub(super) struct Places {
    data: Rc<dyn SharedData>,
    slots: Slots,
    names: Names,
    holders: Rc<RefCell<Holders>>,
    traffic: Rc<Traffic>,
    limit: u64,
    plans: ByPlan<u64>,
}

/// A slot as it was found, without what is held by workers that died.
pub struct Draft {
    slot: Slot,
    number: Option<u32>,
}

impl Places {
    /// Those of a rule of a namespace, for a worker that is one of `holders`.
    pub(super) fn new(
        spec: &CounterSpec,
        namespace: &str,
        data: Rc<dyn SharedData>,
        traffic: Rc<Traffic>,
        holders: Rc<RefCell<Holders>>,
    ) -> Places {
        let slots = Slots::new(data.clone(), traffic.clone(), 0);
        let names = Names::new(namespace, spec.fingerprint, spec.keys);
        let (limit, plans) = (spec.algorithm.properties().most_at_once, ByPlan::new(spec));
        Places { data, slots, names, holders, traffic, limit, plans }
    }

    /// As [`Store::judge_by`](super::Store::judge_by).
    pub(super) fn judge_by(&mut self, plan: u32) {
        self.plans
            .take(plan, &mut self.limit, |spec| Some(spec.algorithm.properties().most_at_once));
    }

    /// Looks at a caller's slot.
    pub(super) fn look(&mut self, key: Key, now: Micros) -> Draft {
        let mut found = words::read_all(&*self.data, self.names.slot(key));
        if found.1.is_none() && key != Key::ALL && self.slots.agree_on(&mut self.names, &mut 0) {
            found = words::read_all(&*self.data, self.names.slot(key));
        }
        let (words, number) = found;
        let mut slot = Slot::read(&words).unwrap_or_else(|| {
            number.iter().for_each(|_| one_more(&self.traffic.corrupt));
            Slot::default()
        });
        let mut holders = self.holders.borrow_mut();
        if !slot.is_held_by(|worker| holders.lives(worker, now)) {
            // Whoever holds something here has said that it lives before it was written.
            holders.look(&self.data);
            slot.keep(|worker| holders.lives(worker, now));
        }
        Draft { slot, number }
    }

    fn write(&mut self, key: Key, Draft { slot, number }: &Draft) -> bool {
        let bytes: Vec<u8> = slot.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        self.slots.swap_bytes(self.names.slot(key), &bytes, *number)
    }

    fn home(&self, key: Key, slot: &Slot) -> u64 {
        slot.home(key.hash, 2 * self.names.callers())
    }

    /// How many there are.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// How many places a caller has left, and whether they are shared.
    pub(super) fn left(&self, key: Key, draft: &Draft) -> (u64, bool) {
        let home = self.home(key, &draft.slot);
        (self.limit.saturating_sub(draft.slot.taken(home)), Slot::is_shared(home))
    }

    /// Takes a place of a caller, whose slot was found so. How many are left; nothing if there was none.
    pub(super) fn take(&mut self, key: Key, mut draft: Draft, now: Micros) -> Option<u64> {
        let is_told = self.holders.borrow_mut().beat(&self.data, now);
        for _ in 0..ATTEMPTS {
            let home = self.home(key, &draft.slot);
            let left = self.limit.checked_sub(draft.slot.taken(home) + 1).filter(|_| is_told)?;
            let mut holders = self.holders.borrow_mut();
            draft.slot.take(home, holders.own());
            holders.held += 1;
            drop(holders);
            if self.write(key, &draft) {
                return Some(left);
            }
            self.holders.borrow_mut().held -= 1;
            draft = self.look(key, now);
        }
        one_more(&self.traffic.exhausted);
        None
    }

    /// The number under which this worker takes places now.
    pub(super) fn holder(&self) -> u64 {
        self.holders.borrow().own()
    }

    /// Gives a place of a caller back that was taken under a number. Whether that is done; otherwise others were faster.
    pub(super) fn give_back(&mut self, key: Key, holder: u64, now: Micros) -> bool {
        let own = self.holder();
        if holder != own {
            // It was forgotten, and is not counted any more.
            return true;
        }
        for _ in 0..ATTEMPTS {
            let mut draft = self.look(key, now);
            if !draft.slot.give_back(key.hash, own) || self.write(key, &draft) {
                let mut holders = self.holders.borrow_mut();
                holders.held = holders.held.saturating_sub(1);
                return true;
            }
        }
        false
    }

    /// Says that this worker lives, if it holds anything. Whether it does.
    pub(super) fn tell(&mut self, now: Micros) -> bool {
        let mut holders = self.holders.borrow_mut();
        let holds = holders.held > 0;
        if holds {
            holders.beat(&self.data, now);
        }
        holds
    }
}

/// What a slot is found to be once its rule has ended.
pub(super) fn look(bytes: Vec<u8>, namespace: &str, data: &dyn SharedData, now: Micros) -> Found {
    let words: Vec<u64> =
        bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    // What is no slot was not written by the rule.
    let Some(mut slot) = Slot::read(&words).filter(|slot| !slot.is_empty()) else {
        return Found::Empty;
    };
    slot.keep(holders::living(data, namespace, now));
    if slot.is_empty() {
        return Found::Over(slot.words().iter().flat_map(|word| word.to_le_bytes()).collect());
    }
    // Nobody knows when requests end.
    Found::InUse(now.saturating_add(10 * SECOND))
}
