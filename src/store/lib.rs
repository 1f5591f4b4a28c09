//! Where usage is counted. A store owns atomicity: it runs the pure step of an algorithm and keeps
//! what the step wrote.
//!
//! A store checks without writing and is charged later. It remembers no request: a reservation contains the result and
//! the version of the state, so a reservation that is charged after others is checked again.
//!
//! `local.rs` counts in a bounded table of the worker. When the table is full of live callers, new callers share 1,024
//! overflow buckets; a caller that gets a separate row later starts with the usage of the bucket it shared. `shared.rs`
//! does the same for the gateway in a fixed number of slots of shared data, with several callers in each
//! (`slots/slot.rs`); `slots/transaction.rs` is one caller as read from there, to be changed by compare-and-swap. Each
//! charge of a bucket is followed by a write of the caller's slot, and a worker that lost that race checks again.
//!
//! `lease.rs` is the knowledge of a worker about a caller: its lease, how often it comes, and its latest refusal.
//! `slots/outstanding.rs` counts the leases of a caller over all workers, by terms of 500 ms, so that the leases of a
//! dead worker come back. A lease is spent for a shorter time than it counts as outstanding.
//!
//! Tables belong to the worker and not to a configuration (`tables.rs`): the next configuration finds those of the same
//! rules by their fingerprints, and shares them while requests of the old one are under way. Shared data cannot be
//! deleted: expired state of a rule that ended is overwritten by an empty value (`remains.rs`).
//!
//! A store judges by one plan at a time (`plans.rs`). States mean the same under all plans of a rule and expire by the
//! slowest. A lease and a remembered refusal end when the caller has another plan; a charge is settled by the plan that
//! charged it.

mod counter_spec;
pub mod daily;
mod found;
pub mod hot;
pub mod in_flight;
pub mod lease;
pub mod leases;
pub mod local;
pub mod permit;
pub(crate) mod places;
pub mod plans;
pub mod remains;
pub mod reservation;
mod row;
pub mod shared;
mod slab;
pub mod slots;
mod state;
pub mod stores;
pub mod table;
pub mod tables;
pub mod usage;
mod watermark;
mod weak_registry;

use std::any::Any;

use crate::permit::Unsettled;
pub use counter_spec::CounterSpec;
use diana_policy::decision::Decision;
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now};
pub use reservation::Reservation;
use usage::{Unliftable, Usage};

/// The callers of one rule.
pub trait Store: Any {
    /// Judges by the numbers of this plan from now on, where a rule has plans. What was used stays used.
    fn judge_by(&mut self, plan: u32);

    /// Checks a request that takes `cost` permits and charges nothing.
    fn check(&mut self, key: Key, cost: u64, now: Now) -> Reservation;

    /// Charges a request, to leave `delay` ticks after it was checked, which is no less than the
    /// wait that this rule asked for. Where the decision is not an admission with a wait of at
    /// most `delay`, nothing was charged: somebody else was faster, or the rule cannot hold a
    /// request that long.
    fn charge(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision;

    /// Whether a request can be held for `delay` ticks, because another rule asks for it: an
    /// admission, or when it can. Charges nothing.
    fn can_hold(&mut self, reservation: &mut Reservation, delay: Micros) -> Decision;

    /// Takes a charge back, since another rule would not be charged.
    fn undo(&mut self, reservation: &mut Reservation);

    /// Permits left after the charge, or as the request found it if there was none; never more than
    /// the truth. `None` if that is not known here.
    fn remaining(&mut self, reservation: &Reservation) -> Option<u64>;

    /// Ticks until the caller has more permits than are left, if it has used any; nothing if its state is not known here.
    fn renewal(&mut self, _reservation: &Reservation) -> Option<Option<Micros>> {
        None
    }

    /// Settles a charge at `now`. Returns false if other workers were faster; then try again.
    #[must_use]
    fn settle(&mut self, charge: &Unsettled, now: Now) -> bool;

    /// What a caller has used; nothing if each worker counts for itself.
    fn look_at(&mut self, _key: Key, _now: Now) -> Option<Usage> {
        None
    }

    /// Lifts what a caller has used: from now on only what is lent or reserved counts.
    ///
    /// # Errors
    /// Why that cannot be done.
    fn lift(&mut self, _key: Key, _now: Now) -> Result<(), Unliftable> {
        Err(Unliftable::Local)
    }

    /// Does what has to be done from time to time. Whether there is more to do soon, even if no
    /// request comes.
    fn tidy(&mut self, now: Now) -> bool;

    /// How many callers more are in this worker's memory than when this was last asked.
    fn change_in_keys(&mut self) -> i64;

    /// Ends this store, unless it is asked again; the same as [`Store::change_in_keys`] for the last time.
    fn close(&mut self, now: Now) -> i64;
}
