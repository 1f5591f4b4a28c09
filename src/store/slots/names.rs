//! The keys of shared data: a fixed number of slots, of slots for overflow buckets, and of lines with
//! leases.

use std::fmt::Write as _;

use diana_policy::key::Key;

/// Callers in a slot at the configured number of live callers. They share the host's overhead per
/// key.
const CALLERS: usize = 16;

/// The same if `keys` was increased after the slots were counted. Limited, since each request
/// copies a slot.
const MOST_CALLERS: usize = 256;

/// The maximum number of slots, more than any value of `keys` needs.
const MOST_SLOTS: u64 = 1 << 20;

/// Stands for no slot.
const NONE: u64 = u64::MAX;

/// Overflow buckets, shared by new callers while their slots are full.
const BUCKETS: u64 = 1024;

/// Slots that contain the buckets.
const BUCKET_SLOTS: u64 = 64;

/// Lines with leases of the gateway from an authority outside of it.
const LINES: u64 = 4096;

/// A slot of a rule's callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SlotPlace {
    /// The rule's fingerprint.
    pub(crate) rule: u64,
    /// The number of slots.
    slots: u64,
    /// The slot's index, or the number of slots for the counter of all callers.
    pub(crate) index: u64,
}

/// Names of one rule's slots.
#[derive(Debug)]
pub struct Names {
    /// The common prefix, followed by the rest of the latest name.
    name: String,
    fingerprint: u64,
    /// The slot of the latest name, since most names are used twice: to read the slot, and to write
    /// it.
    last: u64,
    prefix: usize,
    keys: usize,
    slots: u64,
}

impl Names {
    /// Names for about `keys` callers of a rule.
    pub fn new(namespace: &str, fingerprint: u64, keys: usize) -> Names {
        let name = format!("diana/2/{namespace}/{fingerprint:016x}/");
        let slots = Names::slots_for(keys);
        Names { prefix: name.len(), name, fingerprint, last: NONE, keys, slots }
    }

    /// The name of a slot in a namespace.
    pub(crate) fn at(namespace: &str, SlotPlace { rule, slots, index }: SlotPlace) -> String {
        let mut names = Names::new(namespace, rule, 0);
        names.recount(slots);
        match index == slots {
            true => names.numbered("all", None),
            false => names.numbered("", Some((slots, index))),
        };
        names.name
    }

    /// The slot of a caller, to find its name again.
    pub(crate) fn place(&self, key: Key) -> SlotPlace {
        SlotPlace { rule: self.fingerprint, slots: self.slots, index: self.index(key) }
    }

    /// The maximum number of slots and of callers in each, for `callers` live callers; and the same
    /// for the slots of buckets, which a rule with one counter for all callers does not need.
    pub(crate) fn most(callers: Option<usize>) -> [(u64, u64); 2] {
        let buckets = if callers.is_some() { BUCKET_SLOTS } else { 0 };
        let slots = Names::slots_for(callers.unwrap_or(1));
        [(slots, 2 * CALLERS as u64), (buckets, BUCKETS / BUCKET_SLOTS)]
    }

    fn slots_for(keys: usize) -> u64 {
        (keys.div_ceil(CALLERS) as u64).clamp(1, MOST_SLOTS)
    }

    /// The number of slots.
    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    /// The name of the value with the number of slots. The first worker sets it from its `keys`,
    /// since all workers must find a caller in the same slot.
    pub fn count(&mut self) -> &str {
        self.numbered("slots", None)
    }

    /// Sets the number of slots. Returns true if it changed.
    pub fn recount(&mut self, slots: u64) -> bool {
        let slots = slots.clamp(1, MOST_SLOTS);
        self.last = NONE;
        std::mem::replace(&mut self.slots, slots) != slots
    }

    /// Expected callers in a slot. There is room for twice as many, since hashes do not fill slots
    /// evenly.
    pub(crate) fn callers(&self) -> usize {
        let slots = usize::try_from(self.slots).unwrap_or(usize::MAX);
        self.keys.div_ceil(slots.max(1)).clamp(CALLERS, MOST_CALLERS)
    }

    /// The index of a caller's slot. The counter of all callers has an additional one.
    fn index(&self, key: Key) -> u64 {
        if key == Key::ALL { self.slots } else { key.second_hash % self.slots.max(1) }
    }

    /// The slot of a caller. The counter of all callers has a separate one, so that a rule that is
    /// changed to count single callers has as many slots as it needs.
    pub fn slot(&mut self, key: Key) -> &str {
        if key == Key::ALL {
            return self.numbered("all", None);
        }
        let slot = self.index(key);
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

    /// The line of a caller.
    pub(crate) fn line(&mut self, key: Key) -> &str {
        self.numbered("l", Some((LINES, key.hash % LINES)))
    }

    /// The maximum number of lines, for `callers` live callers.
    pub(crate) fn lines(callers: Option<usize>) -> u64 {
        callers.map_or(1, |callers| (callers as u64).min(LINES))
    }

    /// The name of a line by index; `None` from the first unused index on.
    pub(crate) fn nth_line(&mut self, number: u64) -> Option<&str> {
        (number < LINES).then(|| self.numbered("l", Some((LINES, number))))
    }

    /// The name of a slot of callers or buckets by index; `None` from the first unused index on.
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

/// The bucket of a caller, used as its hash in the slot.
pub(crate) fn bucket(key: Key) -> u64 {
    key.hash % BUCKETS
}
