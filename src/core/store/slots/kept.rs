//! Slots as this worker has written them, so that the next charge need not read them first: with many callers a read costs more
//! than all else that is done about a request.
//!
//! Others may have written them since. So nothing is decided by them alone: a request is admitted only once its charge was
//! written under the number of what is kept, which every other write changes.

use std::cell::Cell;
use std::rc::Rc;

use hashbrown::HashTable;

use super::Draft;
use super::slot::Slot;
use crate::time::{Micros, SECOND};

/// How long a slot is kept at most, twice. The host's numbers come again after four billion writes.
const LIFE: Micros = 300 * SECOND;

/// What one slot that others had written weighs in slots that they had not.
const WEIGHT: u32 = 4;

/// So much of that is borne; then nothing is kept for so many slots that would have been.
const MOST_MISSES: u32 = 64;
const PAUSE: u32 = 4_096;

/// Bytes that are left for slots to be kept, of all rules of a configuration.
#[derive(Debug)]
pub struct Room(Cell<usize>);

impl Default for Room {
    fn default() -> Room {
        Room(Cell::new(Room::MOST))
    }
}

impl Room {
    /// All of them.
    pub(in crate::store) const MOST: usize = 2 << 20;

    /// Whether there was room for so many more bytes, which is taken.
    fn take(&self, bytes: usize) -> bool {
        let left = self.0.get().checked_sub(bytes);
        left.into_iter().for_each(|left| self.0.set(left));
        left.is_some()
    }

    fn give_back(&self, bytes: usize) {
        self.0.set(self.0.get() + bytes);
    }
}

/// The slots of one rule that are kept, by their numbers.
pub(super) struct Kept {
    entries: HashTable<Entry>,
    room: Rc<Room>,
    /// How much more often than not others had written them, up to [`MOST_MISSES`].
    misses: u32,
    /// For how many more slots nothing is kept.
    pause: u32,
    /// When old ones were dropped last.
    tidied: Micros,
}

struct Entry {
    place: u64,
    /// Nothing while it is in use.
    slot: Option<Slot>,
    number: u32,
    at: Micros,
    /// What it takes of the room.
    bytes: usize,
}

impl Kept {
    pub(super) fn new(room: Rc<Room>) -> Kept {
        Kept { entries: HashTable::new(), room, misses: 0, pause: 0, tidied: 0 }
    }

    /// Takes a slot to be written.
    pub(super) fn take(&mut self, place: u64) -> Option<Draft> {
        let entry = self.entries.find_mut(hash(place), |entry| entry.place == place)?;
        let number = Some(entry.number);
        entry.slot.take().map(|slot| Draft { slot, number, is_kept: true })
    }

    /// A slot was taken and written, unless somebody else had written it.
    pub(super) fn tried(&mut self, written: bool) {
        match written {
            true => self.misses = self.misses.saturating_sub(1),
            false => self.misses += WEIGHT,
        }
        if self.misses >= MOST_MISSES {
            self.clear();
            (self.misses, self.pause) = (0, PAUSE);
        }
    }

    /// Whether slots are worth to be kept.
    pub(super) fn keeps(&mut self) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause == 0
    }

    /// Keeps a slot that was written under this number at `at`.
    pub(super) fn put(&mut self, place: u64, slot: Slot, number: u32, at: Micros) {
        // The table has up to twice as many places as it needs, and while it grows half as many again.
        let bytes = slot.capacity() + 3 * size_of::<Entry>();
        let known = self.entries.find_entry(hash(place), |entry| entry.place == place);
        if let Ok(mut known) = known {
            self.room.give_back(known.get().bytes);
            if self.room.take(bytes) {
                *known.get_mut() = Entry { place, slot: Some(slot), number, at, bytes };
            } else {
                known.remove();
                self.shrink();
            }
        } else if self.room.take(bytes) {
            let entry = Entry { place, slot: Some(slot), number, at, bytes };
            self.entries.insert_unique(hash(place), entry, |entry| hash(entry.place));
        }
    }

    /// A table does not shrink by itself, and slots that have grown are fewer than there were before.
    fn shrink(&mut self) {
        if 2 * self.entries.capacity() > 5 * self.entries.len() {
            self.entries.shrink_to_fit(|entry| hash(entry.place));
        }
    }

    /// Drops what is old.
    pub(super) fn tidy(&mut self, now: Micros) {
        if now.saturating_sub(self.tidied) < LIFE {
            return;
        }
        self.tidied = now;
        let room = &self.room;
        self.entries.retain(|entry| {
            let stays = entry.slot.is_some() && now.saturating_sub(entry.at) < LIFE;
            if !stays {
                room.give_back(entry.bytes);
            }
            stays
        });
        self.shrink();
    }

    /// Drops all.
    pub(super) fn clear(&mut self) {
        let bytes = self.entries.iter().map(|entry| entry.bytes).sum();
        self.room.give_back(bytes);
        self.entries = HashTable::new();
    }
}

/// The numbers follow each other, and a table takes the topmost bits as well as the lowest.
fn hash(place: u64) -> u64 {
    place.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
