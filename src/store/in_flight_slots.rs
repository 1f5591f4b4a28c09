//! In-flight slots of one rule, counted by all workers together.
//!
//! They are stored in a fixed number of values of shared data, changed by compare-and-swap. Each
//! worker has a separate count for each caller, so that the slots of a dead worker can be
//! identified. A count is valid while its worker is listed among the [`Holders`].
//!
//! A caller without a row, or without room in a value, shares slots. While any of the shared slots
//! are in use, no caller moves to a separate row.

mod holders;
mod holdings;
mod own_slots;

use std::cell::RefCell;
use std::rc::Rc;

use super::plans::ByPlan;
use super::slots::names::Names;
use super::slots::slot::SlotFormat;
use super::slots::{ATTEMPTS, HOST, Slots};
use super::slots::{Traffic, one_more};
use crate::counter_spec::CounterSpec;
use crate::slots::Found;
use diana_policy::Memory;
use diana_policy::key::Key;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, SECOND};
use diana_policy::words;
pub(super) use holders::Holders;
use holdings::{Holdings, SHARED};

/// Workers with slots of the same caller, as assumed for the memory.
const WORKERS: u64 = 8;

/// The memory of a rule. The workers need none.
pub(super) fn memory(callers: Option<usize>) -> Memory {
    let [(slots, room), _] = Names::most(callers);
    // One more for callers that share.
    let callers = if callers.is_some() { room + 1 } else { 1 };
    Memory { worker: 0, shared: slots * (HOST + holdings::bytes(callers, WORKERS)) }
}

/// The in-flight slots of one rule.
pub(super) struct InFlightSlots {
    data: Rc<dyn SharedData>,
    slots: Slots,
    names: Names,
    holders: Rc<RefCell<Holders>>,
    traffic: Rc<Traffic>,
    limit: u64,
    plans: ByPlan<u64>,
}

/// A copy of a value, without the slots of workers that are not listed.
pub(super) struct HoldingsDraft {
    slot: Holdings,
    number: Option<u32>,
}

impl InFlightSlots {
    /// The slots of a rule, for a worker among `holders`.
    pub(super) fn new(
        spec: &CounterSpec,
        namespace: &str,
        data: Rc<dyn SharedData>,
        traffic: Rc<Traffic>,
        holders: Rc<RefCell<Holders>>,
    ) -> InFlightSlots {
        let slots = Slots::new(data.clone(), traffic.clone(), SlotFormat::default());
        let names = Names::new(namespace, spec.fingerprint, spec.keys);
        let (limit, plans) = (spec.algorithm.properties().most_at_once, ByPlan::new(spec));
        InFlightSlots { data, slots, names, holders, traffic, limit, plans }
    }

    /// Switches to the limit of this plan.
    pub(super) fn use_plan(&mut self, plan: u64) {
        self.plans
            .select(plan, &mut self.limit, |spec| Some(spec.algorithm.properties().most_at_once));
    }

    /// Reads a caller's value.
    pub(super) fn read(&mut self, key: Key, now: Micros) -> HoldingsDraft {
        let mut found = words::read_all(&*self.data, self.names.slot(key));
        if found.1.is_none() && key != Key::ALL && self.slots.agree_on(&mut self.names, &mut 0) {
            found = words::read_all(&*self.data, self.names.slot(key));
        }
        let (words, number) = found;
        let mut slot = Holdings::read(&words).unwrap_or_else(|| {
            number.iter().for_each(|_| one_more(&self.traffic.corrupt));
            Holdings::default()
        });
        let mut holders = self.holders.borrow_mut();
        if !slot.is_held_by(|worker| holders.lives(worker, now)) {
            // Workers send a heartbeat before they write a slot.
            holders.read(&self.data);
            slot.keep(|worker| holders.is_listed(worker));
            if !slot.is_held_by(|worker| holders.lives(worker, now)) {
                holders.suspect();
            }
        }
        HoldingsDraft { slot, number }
    }

    fn write(&mut self, key: Key, HoldingsDraft { slot, number }: &HoldingsDraft) -> bool {
        let bytes: Vec<u8> = slot.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        self.slots.swap_bytes(self.names.slot(key), &bytes, *number)
    }

    fn home(&self, key: Key, slot: &Holdings) -> u64 {
        slot.home(key.hash, 2 * self.names.callers())
    }

    /// The limit.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// The number of free slots of a caller, and whether they are shared.
    pub(super) fn left(&self, key: Key, draft: &HoldingsDraft) -> (u64, bool) {
        let home = self.home(key, &draft.slot);
        (self.limit.saturating_sub(draft.slot.taken(home)), Holdings::is_shared(home))
    }

    /// Takes a slot of a caller. Returns the number of free slots, or `None` if there was none.
    pub(super) fn take(&mut self, key: Key, mut draft: HoldingsDraft, now: Micros) -> Option<u64> {
        for _ in 0..ATTEMPTS {
            let is_from_data = self.holders.borrow_mut().beat(&self.data, now);
            let home = self.home(key, &draft.slot);
            let left =
                self.limit.checked_sub(draft.slot.taken(home) + 1).filter(|_| is_from_data)?;
            draft.slot.add(home, self.holders.borrow().own(), 1);
            if self.write(key, &draft) {
                let place = self.names.place(key);
                self.holders.borrow_mut().held.add(place, home);
                return Some(left);
            }
            draft = self.read(key, now);
        }
        one_more(&self.traffic.exhausted);
        None
    }

    /// Frees a slot of a caller. Returns false if other workers won every race.
    pub(super) fn free(&mut self, key: Key, now: Micros) -> bool {
        for _ in 0..ATTEMPTS {
            let mut draft = self.read(key, now);
            let own = self.holders.borrow().own();
            let place = self.names.place(key);
            // Without a slot in the value, other workers have dropped it.
            let is_own = |home: &u64| self.holders.borrow().held.has(place, *home);
            let Some(home) = [key.hash, SHARED].into_iter().find(is_own) else { return true };
            if !draft.slot.free(home, own) || self.write(key, &draft) {
                self.holders.borrow_mut().held.remove(place, home);
                return true;
            }
        }
        false
    }

    /// Sends a heartbeat of this worker if it is needed. Returns true if further ones are.
    pub(super) fn heartbeat(&mut self, now: Micros) -> bool {
        let mut holders = self.holders.borrow_mut();
        if holders.is_needed() {
            holders.beat(&self.data, now);
        }
        holders.is_needed()
    }
}

/// Classifies a value of a removed rule.
pub(super) fn classify(
    bytes: Vec<u8>,
    namespace: &str,
    data: &dyn SharedData,
    now: Micros,
) -> Found {
    let words: Vec<u64> =
        bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    // Otherwise the rule has not written it.
    let Some(mut slot) = Holdings::read(&words).filter(|slot| !slot.is_empty()) else {
        return Found::Empty;
    };
    slot.keep(holders::living(data, namespace, now));
    if slot.is_empty() {
        return Found::Over(slot.words().iter().flat_map(|word| word.to_le_bytes()).collect());
    }
    // The end of requests is unknown.
    Found::InUse(now.saturating_add(10 * SECOND))
}
