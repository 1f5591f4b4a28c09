//! One caller of a slot, from its read to the compare-and-swap that changes it.

use super::arrears::OpenArrears;
use super::outstanding::Outstanding;
use super::{ATTEMPTS, SlotDraft};
use crate::state::State;
use diana_policy::decision::Decision;
use diana_policy::key::Key;
use diana_policy::time::Now;

/// Where a caller is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// In its slot.
    Slot,
    /// In its slot once it is charged.
    New,
    /// In a bucket, since its slot is full of live callers.
    Overflow,
}

/// One caller as read from the gateway, and the state that a charge writes.
pub(crate) struct Transaction {
    pub(crate) key: Key,
    /// The instant of the check by this worker's clocks, and that of the decision: the slot's
    /// watermark if it is later.
    pub(crate) at: Now,
    pub(crate) now: Now,
    pub(super) slot: SlotDraft,
    pub(super) bucket: SlotDraft,
    pub(crate) home: Home,
    /// Outstanding leases.
    pub(crate) outstanding: Outstanding,
    /// Arrears, where the gateway counts its share of a fleet's limit.
    pub(crate) arrears: OpenArrears,
    /// The state to decide from, and the state after the charge.
    pub(crate) state: State,
    pub(crate) after: State,
    /// The decision on one request, if `after` is the state after its charge.
    pub(crate) decided: Option<Decision>,
    /// The number of lost compare-and-swaps.
    pub(crate) lost: usize,
}

impl Transaction {
    /// A transaction before the first read.
    pub(crate) fn new(key: Key, at: Now, words: usize) -> Transaction {
        Transaction {
            key,
            at,
            now: at,
            slot: SlotDraft::default(),
            bucket: SlotDraft::default(),
            home: Home::New,
            outstanding: Outstanding::default(),
            arrears: OpenArrears::default(),
            state: State::unused(words),
            after: State::unused(words),
            decided: None,
            lost: 0,
        }
    }

    /// The same memory for another transaction.
    pub(crate) fn again(mut self: Box<Transaction>, key: Key, at: Now) -> Box<Transaction> {
        (self.key, self.at, self.now) = (key, at, at);
        (self.decided, self.lost) = (None, 0);
        self
    }

    /// Frees the copies of values. Its next write must read them again.
    pub(crate) fn release(&mut self) {
        (self.slot, self.bucket) = Default::default();
    }

    pub(crate) fn is_overflow(&self) -> bool {
        self.home == Home::Overflow
    }

    /// Returns true if another attempt to write is allowed.
    pub(crate) fn may_try(&self) -> bool {
        self.lost < ATTEMPTS
    }
}
