//! Reads slots of shared data, and writes them back by compare-and-swap.

pub mod arrears;
pub(super) mod caller_slots;
pub mod names;
pub(super) mod outstanding;
pub(super) mod slot;
pub(super) mod transaction;

use std::cell::Cell;
use std::rc::Rc;

use diana_policy::port::SharedData;
use diana_policy::time::Micros;
use names::Names;
use slot::{Slot, SlotFormat};

/// Lost compare-and-swaps for one request before it is refused.
pub const ATTEMPTS: usize = 1_000;

/// Overhead of the host per value, in bytes.
pub const HOST: u64 = 192;

/// The slots of one rule's callers.
pub(super) struct Slots {
    data: Rc<dyn SharedData>,
    traffic: Rc<Traffic>,
    format: SlotFormat,
}

/// A copy of a slot, and its number for the compare-and-swap.
#[derive(Debug, Default)]
pub(super) struct SlotDraft {
    pub(super) slot: Slot,
    number: Option<u32>,
}

impl SlotDraft {
    /// Returns true if the slot was never written.
    pub(super) fn is_new(&self) -> bool {
        self.number.is_none()
    }
}

impl Slots {
    pub(super) fn new(data: Rc<dyn SharedData>, traffic: Rc<Traffic>, format: SlotFormat) -> Slots {
        Slots { data, traffic, format }
    }

    pub(super) fn get(&self, name: &str) -> SlotDraft {
        let Some((bytes, number)) = self.data.get(name) else {
            return SlotDraft { slot: Slot::empty(self.format), ..SlotDraft::default() };
        };
        let slot = Slot::read(bytes, self.format).unwrap_or_else(|| {
            one_more(&self.traffic.corrupt);
            Slot::empty(self.format)
        });
        SlotDraft { slot, number: Some(number) }
    }

    /// Returns true if there is no value under this name.
    pub(super) fn is_absent(&self, name: &str) -> bool {
        self.data.get(name).is_none()
    }

    /// Writes a slot. Returns false if another worker wrote it in the meantime.
    pub(super) fn swap(&self, name: &str, draft: &SlotDraft) -> bool {
        self.swap_bytes(name, draft.slot.bytes(), draft.number)
    }

    /// A number that all workers agree on: `own`, unless another worker has written one. Adds lost
    /// compare-and-swaps to `lost`.
    fn agree(&self, name: &str, own: u64, lost: &mut usize) -> u64 {
        while *lost < ATTEMPTS {
            let known = self.data.get(name);
            let number = known.as_ref().map(|(_, number)| *number);
            if let Some((bytes, _)) = known {
                match <[u8; 8]>::try_from(bytes).map(u64::from_le_bytes) {
                    Ok(agreed) if agreed > 0 => return agreed,
                    _ => one_more(&self.traffic.corrupt),
                }
            }
            if self.swap_bytes(name, &own.to_le_bytes(), number) {
                break;
            }
            *lost += 1;
        }
        own
    }

    /// Sets `names` to the number of slots that all workers agree on. Returns true if it changed.
    pub(super) fn agree_on(&self, names: &mut Names, lost: &mut usize) -> bool {
        let own = names.slots();
        let agreed = self.agree(names.count(), own, lost);
        names.recount(agreed)
    }

    /// Writes a value. Returns false if another worker wrote it since it was read under `number`.
    pub(super) fn swap_bytes(&self, name: &str, bytes: &[u8], number: Option<u32>) -> bool {
        let written = self.data.swap(name, bytes, number);
        if written {
            one_more(&self.traffic.writes);
        } else {
            one_more(&self.traffic.conflicts);
        }
        written
    }
}

/// The content of a value in shared data.
pub(crate) enum Found {
    /// Empty.
    Empty,
    /// In use until this instant at most; zero if that is unknown.
    InUse(Micros),
    /// Expired. These bytes replace it.
    Over(Vec<u8>),
}

/// Counts since the last flush, shared by all stores of a configuration.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Values written.
    pub writes: Cell<u64>,
    /// Compare-and-swaps lost to another worker. Each was retried.
    pub conflicts: Cell<u64>,
    /// Requests refused after too many lost compare-and-swaps in a row.
    pub exhausted: Cell<u64>,
    /// Corrupt values under Diana's keys. They count as empty and are replaced. The metric is
    /// called `foreign`.
    pub corrupt: Cell<u64>,
    /// Parts of tables for all workers that were emptied, since a worker panicked while it changed them.
    pub emptied: Cell<u64>,
}

/// Increments a counter.
pub fn one_more(count: &Cell<u64>) {
    count.set(count.get() + 1);
}
