//! One caller of a slot from the moment that it was read to the compare-and-swap that changes it.

use super::outstanding::Outstanding;
use super::{ATTEMPTS, Draft};
use crate::decision::Decision;
use crate::key::Key;
use crate::store::state::State;
use crate::time::Now;

/// Where a caller is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Home {
    /// In its slot.
    Slot,
    /// In its slot once it is charged.
    New,
    /// In a bucket, since its slot is full of live callers.
    Overflow,
}

/// One caller as the gateway knew it when this worker read it, and what a charge writes in its place.
pub(crate) struct Transaction {
    pub(in crate::store) key: Key,
    /// When this worker read it, and the instant that is decided about.
    pub(in crate::store) at: Now,
    pub(in crate::store) now: Now,
    pub(super) slot: Draft,
    pub(super) bucket: Draft,
    pub(in crate::store) home: Home,
    /// What is out on lease.
    pub(in crate::store) outstanding: Outstanding,
    /// The state to decide from, and the state after the charge.
    pub(in crate::store) state: State,
    pub(in crate::store) after: State,
    /// The decision about one request, as long as the state after is what it charges.
    pub(in crate::store) decided: Option<Decision>,
    /// How many compare-and-swaps were lost.
    pub(in crate::store) lost: usize,
}

impl Transaction {
    /// Nothing has been read yet.
    pub(in crate::store) fn new(key: Key, at: Now, words: usize) -> Transaction {
        Transaction {
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

    pub(in crate::store) fn is_overflow(&self) -> bool {
        self.home == Home::Overflow
    }

    /// Whether one more attempt may be made to write.
    pub(in crate::store) fn may_try(&self) -> bool {
        self.lost < ATTEMPTS
    }
}
