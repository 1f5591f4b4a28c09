//! The in-flight slots of this worker, of all rules and callers, so that it can write them again.

use hashbrown::HashTable;

use super::holdings::Holdings;
use crate::slots::ATTEMPTS;
use crate::slots::names::{Names, SlotPlace};
use diana_policy::port::SharedData;
use diana_policy::words;

/// The slots of a worker.
#[derive(Debug)]
pub(crate) struct OwnSlots {
    namespace: Box<str>,
    all: HashTable<SlotCount>,
}

/// Slots that are counted under one hash in one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SlotCount {
    /// The value.
    place: SlotPlace,
    /// The hash: of the caller, or of all that share.
    home: u64,
    slots: u64,
}

impl SlotCount {
    fn hash(&self) -> u64 {
        hash(&self.place, self.home)
    }
}

/// A caller's hash is random. The rule distinguishes the callers that share, and `all`.
fn hash(place: &SlotPlace, home: u64) -> u64 {
    home ^ place.rule ^ place.index.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl OwnSlots {
    pub(super) fn new(namespace: &str) -> OwnSlots {
        OwnSlots { namespace: namespace.into(), all: HashTable::new() }
    }

    /// Returns true if there are any.
    pub(super) fn is_any(&self) -> bool {
        !self.all.is_empty()
    }

    /// Adds a slot.
    pub(super) fn add(&mut self, place: SlotPlace, home: u64) {
        let is_it = |held: &SlotCount| held.place == place && held.home == home;
        let entry = self.all.entry(hash(&place, home), is_it, SlotCount::hash);
        entry.or_insert(SlotCount { place, home, slots: 0 }).get_mut().slots += 1;
    }

    /// Returns true if there is a slot under this hash.
    pub(super) fn has(&self, place: SlotPlace, home: u64) -> bool {
        let is_it = |held: &SlotCount| held.place == place && held.home == home;
        self.all.find(hash(&place, home), is_it).is_some()
    }

    /// Removes a slot.
    pub(super) fn remove(&mut self, place: SlotPlace, home: u64) {
        let is_it = |held: &SlotCount| held.place == place && held.home == home;
        let Ok(mut entry) = self.all.find_entry(hash(&place, home), is_it) else { return };
        let held = entry.get_mut();
        held.slots -= 1;
        if held.slots == 0 {
            entry.remove();
        }
    }

    /// Writes all of them as slots of the worker `own`, and drops those of workers that are not
    /// listed. Returns false if other workers won every race for a value.
    pub(super) fn write_all(
        &self,
        own: u64,
        data: &dyn SharedData,
        is_listed: &dyn Fn(u64) -> bool,
    ) -> bool {
        let mut all: Vec<SlotCount> = self.all.iter().copied().collect();
        all.sort_unstable();
        all.chunk_by(|one, next| one.place == next.place).all(|of_value| {
            let name = of_value.first().map(|held| Names::at(&self.namespace, held.place));
            name.is_none_or(|name| write(&name, of_value, own, data, is_listed))
        })
    }
}

/// Writes the slots in one value. Unchanged ones are written, too, so that a worker which dropped
/// them just now loses the race.
fn write(
    name: &str,
    of_value: &[SlotCount],
    own: u64,
    data: &dyn SharedData,
    is_listed: &dyn Fn(u64) -> bool,
) -> bool {
    (0..ATTEMPTS).any(|_| {
        let (words, number) = words::read_all(data, name);
        let mut slot = Holdings::read(&words).unwrap_or_default();
        slot.keep(|worker| worker != own && is_listed(worker));
        for held in of_value {
            slot.add(held.home, own, held.slots);
        }
        words::write_all(&slot.words(), data, name, number)
    })
}
