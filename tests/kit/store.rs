//! Stores of several workers, and rules for them.

pub mod gateway;
pub mod rule;

use diana_core::decision::Decision;
use diana_core::key::Key;
use diana_core::redis::handle::Handle;
use diana_core::redis::store::RedisStore;
use diana_core::store::{Reservation, Store};
use diana_core::time::Now;

/// A request that no other rule judges.
pub trait Take {
    /// Checks a request, and charges it if it may leave at once and shares no bucket. Then it returns `None`.
    fn take(&mut self, key: Key, cost: u64, now: Now) -> Option<Reservation>;
}

impl<S: Store + ?Sized> Take for S {
    fn take(&mut self, key: Key, cost: u64, now: Now) -> Option<Reservation> {
        let mut found = self.check(key, cost, now);
        let is_charged = found.decision() == Decision::NOW
            && !found.is_overflow()
            && self.charge(&mut found, 0).is_admitted();
        (!is_charged).then_some(found)
    }
}

/// The same in a store of the fleet.
pub trait TakeOfFleet {
    /// As [`Take::take`], unless Redis has to decide.
    fn take(&mut self, key: Key, cost: u64, now: Now, handle: &mut Handle) -> Option<Reservation>;
}

impl TakeOfFleet for RedisStore {
    fn take(&mut self, key: Key, cost: u64, now: Now, handle: &mut Handle) -> Option<Reservation> {
        let mut found = self.check(key, cost, now, handle);
        let is_charged = !found.asks()
            && !found.is_overflow()
            && found.decision() == Decision::NOW
            && self.charge(&mut found, 0, handle).is_admitted();
        (!is_charged).then_some(found)
    }
}
