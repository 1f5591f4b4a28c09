//! The rate-limiting algorithms. A new one is one file in `algorithm/` and one line in
//! [`REGISTRY`]; the configuration, its messages and the laws cover it from there.
//!
//! An algorithm is a pure step over a few machine words:
//! `(old state, now, cost) → (new state or nothing, decision)`. `settle` replaces a charge by the
//! true cost of its request: that is a refund, a debt, or the end of a reservation. `hold_back`
//! keeps a bucket from refilling while its permits are leased. All zero is the state of a new
//! caller, so expired state is dropped without loss. A state contains the usage and not the
//! remaining permits, so limits can change under it.
//!
//! The registry has an entry for each algorithm, for the rest of the program: whether it queues and
//! holds requests, how its permits may be leased, the kind of its part of the Redis script, and the
//! share of its quota for one gateway. No other code depends on a rule's algorithm. Token bucket,
//! leaky bucket and warm-up are one bucket with parameters (`bucket.rs`). Its usage is in
//! `debt.rs`: permits times ticks in 128 bits, exact and without divisions for an admitted request.
//!
//! A rule with reservations keeps the settled usage in a second state, for refusals and resets
//! (`counted.rs`). Windows support that, but buckets do not: a window holds a charge until the
//! window ends, but a bucket drains a charge while its stream is open.
//!
//! ```
//! use diana_algorithm::entry;
//! use diana_policy::Quota;
//! use diana_policy::decision::{Decision, Retry};
//! use diana_policy::time::{Now, SECOND, Unit};
//!
//! let window = entry("W").unwrap().algorithm(&Quota::new(Unit::Minute, 1), false).unwrap();
//! let (mut state, mut next) = (vec![0; window.properties().words], vec![0; window.properties().words]);
//! let now = Now { mono: 0, wall: 75 * SECOND };
//! assert_eq!(window.step(&state, now, 0, 1, &mut next), Decision::Admit { wait: 0 });
//! state.copy_from_slice(&next);
//! let refused = Decision::Refuse { retry: Retry::After(45 * SECOND) };
//! assert_eq!(window.step(&state, now, 0, 1, &mut next), refused);
//! ```

mod bucket;
pub mod calendar;
mod counted;
mod debt;
mod entry;
pub mod fixed_window;
mod hold;
mod in_flight;
pub mod leaky_bucket;
pub mod sliding_window;
pub mod token_bucket;
mod warm_up;

pub use counted::{CountsUsed, counted};
use diana_policy::decision::Decision;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};
pub use entry::{
    Built, BuiltAlgorithm, Capabilities, Codec, Conflict, Entry, Form, Leasing, Setting,
};
use std::fmt::Debug;

/// A pure step over a few machine words.
///
/// A state is a slice of [`Properties::words`] 64-bit words. All zero is the state of a new caller.
/// No method reads a clock, panics, or depends on anything but its arguments, so a store may repeat
/// a step until its write succeeds. `new` has the length of the old state. A method writes it only
/// if its documentation states that.
pub trait Algorithm: Debug + Send + Sync {
    /// Properties that do not depend on a state.
    fn properties(&self) -> &Properties;

    /// Decides about a request of `cost` permits at `now`. Writes the charged state into `new` if
    /// the request is admitted.
    ///
    /// `delay` is how many ticks after `now` the request leaves at the earliest, because another
    /// rule holds it. Its turn under this rule comes no earlier. The request is refused if this
    /// rule cannot hold it until then. Rules that hold no requests ignore `delay`: they charge at
    /// `now`, and admit with a wait of 0.
    fn step(&self, old: &[u64], now: Now, delay: Micros, cost: u64, new: &mut [u64]) -> Decision;

    /// The receipt of the charge that produced the state `charged`: a number by which
    /// [`Algorithm::settle`] finds the charge again.
    fn receipt(&self, charged: &[u64]) -> u64;

    /// Replaces a charge by the true cost of its request, and writes the state after it into `new`.
    ///
    /// Permits that were not used come back as of the instant of their charge, as far as that
    /// breaks no bound. Permits beyond the charge count from `now`, whether they fit or not: a
    /// debt, which ends like all usage.
    fn settle(&self, old: &[u64], now: Now, settlement: &Settlement, new: &mut [u64]);

    /// The monotonic instant at which a lease that was charged at `now` ends. `None` if
    /// these permits must not be leased.
    fn spend_by(&self, charged: &[u64], now: Now) -> Option<Micros>;

    /// Advances the state to `at` on the monotonic clock while `out` charged permits are
    /// outstanding, and writes it into `new`. `out` includes the permits that were spent or
    /// returned since the previous call. It comes before any other step at `at`.
    ///
    /// A bucket must not refill while its permits are outstanding, or a spike after an idle time
    /// would pass twice.
    fn hold_back(&self, old: &[u64], _out: u64, _at: Micros, new: &mut [u64]) {
        copy(old, new);
    }

    /// Corrects a state by the report of an authority, and writes it into `new`. Only rules with
    /// permits that may be leased need it.
    fn learn(&self, old: &[u64], _report: &UsageReport, new: &mut [u64]) {
        copy(old, new);
    }

    /// The usage of a caller at `now`.
    fn balance(&self, state: &[u64], now: Now) -> Balance;

    /// Clears the usage of a caller at `now`, except reserved permits and `out` outstanding ones,
    /// and writes the state after it into `new`. Returns false if the state consists of requests in
    /// a queue or in flight, which cannot be cleared.
    fn reset(&self, old: &[u64], now: Now, out: u64, new: &mut [u64]) -> bool;

    /// The monotonic instant from which on `state` decides like the state of a new caller, as seen
    /// at `now`. At or before `now` if it has expired already.
    fn expires(&self, state: &[u64], now: Now) -> Micros;
}

/// Properties of an algorithm that do not depend on a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Properties {
    /// Words of a state.
    pub words: usize,
    /// The quota in permits, as `ratelimit-policy` reports it.
    pub limit: u64,
    /// The window of that quota in ticks. Zero if the quota is a number of requests at a time.
    pub window: Micros,
    /// Most permits of a single request. A request that takes more is always refused.
    pub most_at_once: u64,
    /// Most permits that all workers together may keep for later requests.
    pub most_out: u64,
    /// Most ticks for which another rule may hold a request that this rule admits. `Micros::MAX` if
    /// this rule does not count requests at the instant at which they leave.
    pub longest_delay: Micros,
    /// True if charged permits return only with their requests, never by time. Where callers share
    /// a bucket, a caller without a separate state stays in it until all permits have returned.
    pub is_held: bool,
}

impl Properties {
    /// Properties of a quota of `limit` permits in a window, all of which a single request may
    /// take.
    fn new(words: usize, limit: u64, window: Micros) -> Properties {
        Properties {
            words,
            limit,
            window,
            most_at_once: limit,
            most_out: u64::MAX,
            longest_delay: Micros::MAX,
            is_held: false,
        }
    }

    /// The quota in permits and its window.
    #[must_use]
    pub fn quota(&self) -> (u64, Micros) {
        (self.limit, self.window)
    }
}

/// The usage of a caller at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Balance {
    /// Remaining permits; never more than a request could take at once.
    pub remaining: u64,
    /// Charged permits. They exceed the limit after debts, or when the plan got smaller. Where
    /// charges are turns in a queue or requests in flight: 1 if there are any, otherwise 0.
    pub charged: u64,
    /// The part of `charged` that is reserved for requests in progress, if it is counted separately
    /// from used permits.
    pub reserved: u64,
    /// Ticks until more permits remain if no other request comes. A permit of a request in flight
    /// may come back in the next tick. `None` if no permits are used, or if there will never be
    /// more.
    pub renewal: Option<Micros>,
}

/// The usage of a caller, as an authority reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageReport {
    /// When it decided.
    pub at: Now,
    /// Charged permits.
    pub charged: u64,
    /// Ticks until its window ends, or until its bucket is full.
    pub ends: Micros,
    /// Permits that are charged here and that the report does not contain.
    pub more: u64,
}

/// The renewal after an admitted request of `cost` permits, at the latest: as if it were the only
/// request. For states that are not known here.
pub fn latest_renewal(algorithm: &dyn Algorithm, cost: u64, now: Now) -> Option<Micros> {
    let unused = vec![0; algorithm.properties().words];
    let mut charged = unused.clone();
    algorithm.step(&unused, now, 0, cost, &mut charged);
    algorithm.balance(&charged, now).renewal
}

/// Copies a state.
fn copy(old: &[u64], new: &mut [u64]) {
    new.iter_mut().zip(old).for_each(|(new, old)| *new = *old);
}

/// Writes the state in which only `permits` are charged.
fn only(algorithm: &dyn Algorithm, now: Now, permits: u64, new: &mut [u64]) {
    new.fill(0);
    if permits > 0 {
        let unused = vec![0; new.len()];
        algorithm.settle(&unused, now, &Settlement::debit(permits), new);
    }
}

/// All algorithms. The first is the default.
pub const REGISTRY: &[Entry] =
    &[token_bucket::ENTRY, fixed_window::ENTRY, sliding_window::ENTRY, leaky_bucket::ENTRY];

/// The algorithm of rules with `in_flight`.
pub const IN_FLIGHT: &Entry = &in_flight::ENTRY;

/// The algorithm with this short name.
#[must_use]
pub fn entry(short: &str) -> Option<&'static Entry> {
    REGISTRY.iter().chain([IN_FLIGHT]).find(|entry| entry.short == short)
}
