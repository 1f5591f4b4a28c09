//! The keys of shared data: a fixed number of slots, and of slots for overflow buckets.

use std::fmt::Write as _;

use diana_policy::key::Key;

/// Callers in a slot where as many are live as room was asked for; the host's overhead for a key
/// is theirs together.
const CALLERS: usize = 16;

/// The same where room for more was asked for than when the slots were counted: a slot is copied
/// for each request.
const MOST_CALLERS: usize = 256;

/// Most slots: more than any number of keys asks for.
const MOST_SLOTS: u64 = 1 << 20;

/// The number of no slot.
const NONE: u64 = u64::MAX;

/// Buckets shared by newcomers while their slots are full.
const BUCKETS: u64 = 1024;

/// Slots that hold the buckets.
const BUCKET_SLOTS: u64 = 64;

/// Names of one rule's slots.
#[derive(Debug)]
pub struct Names {
    /// All that the names begin with, and the name asked for last.
    name: String,
    /// The slot whose name it is, since most are asked for twice: to read the slot, and to write it.
    last: u64,
    prefix: usize,
    keys: usize,
    slots: u64,
}

impl Names {
    /// Names for about `keys` callers of a rule.
    pub fn new(namespace: &str, fingerprint: u64, keys: usize) -> Names {
        let name = format!("diana/2/{namespace}/{fingerprint:016x}/");
        Names { prefix: name.len(), name, last: NONE, keys, slots: Names::slots_for(keys) }
    }

    /// Slots and callers in each of them, as many as may be live at once where so many callers are
    /// asked for; and the same of the slots that hold buckets, which everybody together never need.
    pub(crate) fn most(callers: Option<usize>) -> [(u64, u64); 2] {
        let buckets = if callers.is_some() { BUCKET_SLOTS } else { 0 };
        let slots = Names::slots_for(callers.unwrap_or(1));
        [(slots, 2 * CALLERS as u64), (buckets, BUCKETS / BUCKET_SLOTS)]
    }

    fn slots_for(keys: usize) -> u64 {
        (keys.div_ceil(CALLERS) as u64).clamp(1, MOST_SLOTS)
    }

    /// How many slots there are.
    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    /// Where all workers find how many slots there are: whoever comes first has counted them by its
    /// `keys`, and a caller has to be in the same slot for everybody.
    pub fn count(&mut self) -> &str {
        self.numbered("slots", None)
    }

    /// There are that many slots. Whether that is news.
    pub fn recount(&mut self, slots: u64) -> bool {
        let slots = slots.clamp(1, MOST_SLOTS);
        self.last = NONE;
        std::mem::replace(&mut self.slots, slots) != slots
    }

    /// Callers that are expected in a slot; there is room for twice as many, since hashes do not fill
    /// slots evenly.
    pub(crate) fn callers(&self) -> usize {
        let slots = usize::try_from(self.slots).unwrap_or(usize::MAX);
        self.keys.div_ceil(slots.max(1)).clamp(CALLERS, MOST_CALLERS)
    }

    /// The number of a caller's slot. Everybody together have one behind all others.
    fn place(&self, key: Key) -> u64 {
        if key == Key::ALL { self.slots } else { key.second_hash % self.slots.max(1) }
    }

    /// The slot of a caller. Everybody together have one of their own, so that a rule which becomes one
    /// for single callers has as many slots as it needs.
    pub fn slot(&mut self, key: Key) -> &str {
        if key == Key::ALL {
            return self.numbered("all", None);
        }
        let slot = self.place(key);
        if self.last != slot {
            self.numbered("", Some((self.slots, slot)));
            self.last = slot;
        }
        &self.name
    }

    /// The slot of a caller's bucket.
    pub(crate) fn bucket(&mut self, key: Key) -> &str {
        self.numbered("o", Some((BUCKET_SLOTS, bucket(key) % BUCKET_SLOTS)))
    }

    /// All names under which callers or buckets may be, by number; nothing from the first number on for
    /// which there is none.
    pub(crate) fn nth(&mut self, number: u64) -> Option<&str> {
        let Some(slot) = number.checked_sub(1) else { return Some(self.numbered("all", None)) };
        match slot.checked_sub(self.slots) {
            None => Some(self.numbered("", Some((self.slots, slot)))),
            Some(bucket) if bucket < BUCKET_SLOTS => {
                Some(self.numbered("o", Some((BUCKET_SLOTS, bucket))))
            }
            Some(_) => None,
        }
    }

    fn numbered(&mut self, kind: &str, number: Option<(u64, u64)>) -> &str {
        self.last = NONE;
        self.name.truncate(self.prefix);
        self.name.push_str(kind);
        if let Some((of, number)) = number {
            // Writing to a string cannot fail.
            _ = write!(self.name, "{of:x}.{number:x}");
        }
        &self.name
    }
}

/// The bucket of a caller, which stands for its hash in its slot.
pub(crate) fn bucket(key: Key) -> u64 {
    key.hash % BUCKETS
}
