//! Where usage is counted. A store is responsible for atomicity: it runs the pure step of an
//! algorithm and stores the result.
//!
//! A check writes nothing; the charge comes later. The store keeps no requests: a reservation
//! contains the outcome, and the store only the draft of its latest check, with the version of the
//! state. A request is checked again if the state has changed when it is charged, or if the draft
//! is about another request.
//!
//! `local.rs` counts in a bounded table of the worker. When the table is full of live callers, new
//! callers share 1,024 overflow buckets; a caller that gets a separate row later starts with the
//! usage of the bucket it shared. `shared.rs` does the same for the gateway in a fixed number of
//! slots of shared data, with several callers in each (`slots/slot.rs`). `slots/transaction.rs` is
//! one caller as read from a slot, to be changed by compare-and-swap. After a charge of a bucket
//! the worker also writes the caller's slot. A worker that inserts the caller there at the same
//! time loses its compare-and-swap, and checks again.
//!
//! A lease is a block of permits that a worker takes in advance and spends alone. `lease.rs` is a
//! worker's knowledge of a caller: its block, its demand, and its latest refusal.
//! `slots/outstanding.rs` counts the leases of a caller over all workers, by terms of 500 ms, so
//! that the leases of a dead worker expire. A lease is spent for a shorter time than it counts as
//! outstanding.
//!
//! Tables belong to the worker and not to a configuration (`tables.rs`): the next configuration
//! finds those of the same rules by their fingerprints, and shares them while requests of the old
//! one are in flight. Shared data cannot be deleted: expired state of a removed rule is overwritten
//! by an empty value (`reclaimer.rs`).
//!
//! A caller is counted under a plan (`plans.rs`). States mean the same under all plans of a rule
//! and expire by the slowest. A lease and a remembered refusal end when the caller changes its
//! plan; a charge is settled by the plan that charged it. A store holds the quota of one plan
//! (`plans.rs`), and switches when a call is about another.
//!
//! A store of one worker, with a rule of one request per minute:
//!
//! ```
//! use std::rc::Rc;
//!
//! use diana_policy::key::Key;
//! use diana_policy::time::{Now, SECOND, Unit};
//! use diana_policy::{Quota, Scope};
//! use diana_store::stores::Stores;
//! use diana_store::tables::Tables;
//! use diana_store::replies::Replies;
//! use diana_store::{Account, CounterSpec, Reservation};
//! # use diana_policy::port::SharedData;
//! # struct NoData;
//! # impl SharedData for NoData {
//! #     fn get(&self, _: &str) -> Option<(Vec<u8>, u32)> { None }
//! #     fn swap(&self, _: &str, _: &[u8], _: Option<u32>) -> bool { false }
//! # }
//!
//! let entry = diana_algorithm::entry("W").unwrap();
//! let spec = CounterSpec::new(entry, Quota::new(Unit::Minute, 1), false).unwrap();
//! let mut tables = Tables::default();
//! let mut store = Stores::new("shop".into(), Rc::new(NoData), &mut tables).open(Scope::Local, spec);
//!
//! let ann = Account { key: Key { hash: 1, second_hash: 2 }, plan: 0 };
//! let mut admit = |now| {
//!     let mut reservation = Reservation::new(ann, 1, now);
//!     store.check(&mut reservation, Replies::none());
//!     let is_admitted = reservation.refused().is_none();
//!     if is_admitted {
//!         store.charge(&mut reservation, 0);
//!     }
//!     is_admitted
//! };
//! let now = Now { mono: SECOND, wall: SECOND };
//! assert_eq!([now, now, now.later(60 * SECOND)].map(admit), [true, false, true]);
//! ```

pub mod backend;
pub mod bans;
pub mod counter_spec;
pub mod daily;
#[cfg(feature = "explored")]
pub mod explored;
pub mod gateway_leases;
pub mod hot;
pub mod in_flight;
pub(crate) mod in_flight_slots;
pub mod lease;
pub mod leases;
pub mod local;
pub mod permit;
pub mod plans;
pub mod process;
pub mod question;
pub mod reclaimer;
pub mod refusal;
pub mod replies;
pub mod reservation;
pub mod share;
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

use crate::permit::OpenCharge;
pub use counter_spec::CounterSpec;
use diana_policy::time::{Micros, Now};
pub use plans::Account;
use question::Question;
use replies::Replies;
pub use reservation::{CheckOutcome, Reservation};
use usage::{Maintained, Order, OrderError, Remaining, Usage};

/// The callers of one rule.
pub trait Store {
    /// Checks a request at its instant without a charge. Replaces an earlier outcome. Decides a
    /// pending request by the authority's reply to its question.
    fn check(&mut self, reservation: &mut Reservation, replies: &Replies);

    /// The question about a pending request. The authority charges the request before it replies.
    fn ask(&mut self, _reservation: &Reservation) -> Option<Question> {
        None
    }

    /// Reads the reply to a question that no request waits for, about this caller.
    fn on_reply(&mut self, _account: Account, _replies: &Replies, _now: Now) {}

    /// Charges an admitted request that proceeds `delay` ticks after its check, which is at least
    /// this rule's own wait. Sets its receipt. Replaces its outcome instead if another worker was
    /// faster, or if the rule cannot hold a request that long.
    fn charge(&mut self, reservation: &mut Reservation, delay: Micros);

    /// Cancels the charge, if there is one, because the request does not proceed.
    fn cancel(&mut self, reservation: &mut Reservation);

    /// Settles a charge at `now`. Returns false if other workers won every race; the limiter then
    /// retries.
    #[must_use]
    fn settle(&mut self, charge: &OpenCharge, now: Now) -> bool;

    /// Remaining permits after the charge of a request, or at the check if there was none; never
    /// more than the truth. `None` if unknown here. A refusal may contain them already.
    fn remaining(&mut self, reservation: &Reservation) -> Option<Remaining>;

    /// The question of an operator's order to the authority, or why it cannot be asked. `None` if
    /// there is no authority.
    fn ask_usage(
        &mut self,
        _account: Account,
        _order: Order,
    ) -> Option<Result<Question, OrderError>> {
        None
    }

    /// Carries out an order of an operator, or reads the authority's reply to its question. Returns
    /// the caller's usage after it, or why the order is not carried out. After a reset only leases
    /// and reservations still count.
    fn inquire(
        &mut self,
        account: Account,
        order: Order,
        replies: &Replies,
        now: Now,
    ) -> Result<Usage, OrderError>;

    /// Periodic maintenance: returns unused leases, and drops expired state.
    fn maintain(&mut self, now: Now) -> Maintained;

    /// Closes this store, unless it is used again. Returns the last [`Maintained::keys`].
    fn close(&mut self, now: Now) -> i64;
}
