//! The rate-limiting algorithms. A new one is one file in `algorithm/` and one line in
//! [`REGISTRY`]; the configuration, its messages and the laws cover it from there.
//!
//! An algorithm is a pure step over a few machine words: `(old state, now, cost) → (new state or nothing, decision)`.
//! Three more steps exist: `reserve` charges a request that another rule holds, `refund` takes a charge back, and
//! `hold_back` keeps a bucket from refilling while its permits are leased. All zero is the state of a caller that was
//! never seen, so expired state is forgotten without loss. A state contains the usage and not the rest, so limits can
//! change under it.
//!
//! The registry has an entry for each algorithm, for the rest of the program: whether it queues and holds requests, how
//! its permits may be leased, which part of the script in Redis counts by it, and the share of its quota for one gateway.
//! No other code asks which algorithm a rule has. TB, LB and warm-up are one bucket with parameters (`bucket.rs`). Its
//! usage is in `debt.rs`: permits times ticks in 128 bits, exact and without divisions for an admitted request.
//!
//! A rule with reservations keeps the settled usage in a second state, for refusals and resets (`counted.rs`). Only
//! windows settle: a window holds a charge until the window ends, but a bucket drains a charge while its stream is open.

mod bucket;
pub mod calendar;
mod counted;
mod debt;
mod entry;
pub mod fixed_window;
mod hold;
mod in_flight;
pub mod leaky_bucket;
mod renewal;
pub mod sliding_window;
pub mod token_bucket;
mod warm_up;

pub use counted::counted;
use diana_policy::decision::Decision;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now};
pub use entry::{BuiltAlgorithm, Can, Codec, Conflict, Entry, Form, Leasing, Setting};
pub use renewal::{latest_renewal, renewal};
use std::fmt::Debug;

/// A pure step over a few machine words.
///
/// State is a slice of [`Algorithm::words`] 64-bit words; all zero is "no state", the state of a
/// caller who was never seen. No method reads a clock, panics, or depends on anything but its
/// arguments, so a store may run a step as often as its own atomicity needs.
pub trait Algorithm: Debug {
    /// How many words the state takes.
    fn words(&self) -> usize;

    /// Decides about a request of `cost` permits at `now`, given the state `old`.
    ///
    /// When it admits, it writes the charged state into `new`; when it refuses, `new` is untouched.
    /// Both slices have [`Algorithm::words`] words.
    fn step(&self, old: &[u64], now: Now, cost: u64, new: &mut [u64]) -> Decision;

    /// Decides about a request like [`Algorithm::step`], and charges one that leaves only `delay`
    /// ticks after `now`, since another rule holds it that long; its own turn here comes no later.
    ///
    /// Refuses if this rule would not hold a request for so long. Rules that hold nothing count at the
    /// decision: they charge as at `now`, and the wait that they admit with is 0.
    fn reserve(
        &self,
        old: &[u64],
        now: Now,
        _delay: Micros,
        cost: u64,
        new: &mut [u64],
    ) -> Decision {
        self.step(old, now, cost, new)
    }

    /// Tells one charge from others when it is taken back: a number that `charged`, the state which
    /// the charge was written into, keeps for as long as [`Algorithm::refund`] can do so.
    fn receipt(&self, charged: &[u64]) -> u64;

    /// Takes `permits` back that were charged under `receipt` and let nobody through, as far as that
    /// breaks no bound, and writes the state that remains into `new`, or a copy of `old`.
    ///
    /// A charge with others after it comes back whole only if its permits were held back
    /// ([`Algorithm::hold_back`]) whenever one of those was charged.
    fn refund(&self, old: &[u64], receipt: u64, permits: u64, new: &mut [u64]);

    /// Takes `permits` back like [`Algorithm::refund`], that were charged at `since` on the monotonic
    /// clock and were not held back: without what may have come back to others in the meantime.
    fn take_back(&self, old: &[u64], receipt: u64, permits: u64, _since: Micros, new: &mut [u64]) {
        self.refund(old, receipt, permits, new);
    }

    /// Charges `permits` at `now` that were used already, whether they fit or not, and writes the state after
    /// it into `new`. What they are too many is a debt, which ends as all usage does.
    ///
    /// Algorithms with leases or [`Can::settles`] implement it; the default copies `old`.
    fn debit(&self, old: &[u64], _now: Now, _permits: u64, new: &mut [u64]) {
        copy(old, new);
    }

    /// Settles a charge at `now`, and writes the state after it into `new`: what was reserved too much comes
    /// back like any charge ([`Algorithm::take_back`]), what was reserved too little is a debt.
    fn settle(&self, old: &[u64], now: Now, settlement: &Settlement, new: &mut [u64]) {
        let Settlement { receipt, since, .. } = *settlement;
        match settlement.debt() {
            0 => self.take_back(old, receipt, settlement.back(), since, new),
            debt => self.debit(old, now, debt, new),
        }
    }

    /// The monotonic instant before which permits that were charged at `now` have to be spent if
    /// somebody keeps them for later; `None` if they must not be kept.
    fn spend_by(&self, charged: &[u64], now: Now) -> Option<Micros>;

    /// Counts `out` permits, charged and kept by somebody until `at` on the monotonic clock, as still
    /// lying in the bucket, and writes the state at `at` into `new`. To be done before anything else
    /// that is done at `at`; `out` includes those that were spent or given back since the last time.
    ///
    /// Otherwise a bucket refills while they are out, and a spike after idleness passes twice.
    fn hold_back(&self, old: &[u64], _out: u64, _at: Micros, new: &mut [u64]) {
        copy(old, new);
    }

    /// Whether what is charged is held by requests and comes back with them, never by time. Where callers share a
    /// bucket, whoever has none of its own stays in it until all of it has come back.
    fn is_held(&self) -> bool {
        false
    }

    /// Most permits that may be kept for later at once, by everybody together.
    fn most_out(&self) -> u64 {
        u64::MAX
    }

    /// Most permits that a single request can ever take; one that takes more is refused for good.
    fn most_at_once(&self) -> u64;

    /// Permits left at `now`; never more than could be admitted at once.
    fn remaining(&self, state: &[u64], now: Now) -> u64;

    /// Permits charged at `now`, which are more than the limit where debts are, or a larger plan was in force; of what
    /// holds requests only whether there are any.
    fn charged(&self, state: &[u64], now: Now) -> u64 {
        u64::from(self.remaining(state, now) == 0)
    }

    /// Charges what a request has turned out to use to `used`, which tells apart what was used of `charged`, and writes it
    /// into `new`: where the request was charged, as long as that counts, and at `now` what it is in debt for.
    fn note_used(
        &self,
        used: &[u64],
        _charged: &[u64],
        _now: Now,
        _settlement: &Settlement,
        new: &mut [u64],
    ) {
        copy(used, new);
    }

    /// Takes what was used back from what is `charged`, and writes what is left into `new`: what is reserved, and still
    /// known by the same receipts. Whether that can be done.
    fn without_used(&self, charged: &[u64], _used: &[u64], new: &mut [u64]) -> bool {
        copy(charged, new);
        false
    }

    /// Permits of what was charged at `now` that requests hold which are under way, where that is told apart from what was
    /// used.
    fn reserved(&self, _state: &[u64], _now: Now) -> u64 {
        0
    }

    /// Lifts what was used at `now`: writes the state into `new` in which only what is reserved and `out` permits beside
    /// are charged. Whether that can be done; otherwise all that
    /// there is are requests that wait for their turn, or hold what they were given.
    fn lift(&self, _old: &[u64], _now: Now, _out: u64, _new: &mut [u64]) -> bool {
        false
    }

    /// The monotonic instant from which `state` decides like no state at all, as seen at `now`;
    /// at or before `now` if it has run out already.
    fn expires(&self, state: &[u64], now: Now) -> Micros;

    /// What `ratelimit-policy` tells clients: quota in permits and window in ticks; requests at a time if that is zero.
    fn policy(&self) -> (u64, Micros);
}

/// Copies a state.
fn copy(old: &[u64], new: &mut [u64]) {
    new.iter_mut().zip(old).for_each(|(new, old)| *new = *old);
}

/// Writes the state in which nothing is charged but so many permits.
fn only(algorithm: &dyn Algorithm, now: Now, permits: u64, new: &mut [u64]) {
    new.fill(0);
    if permits > 0 {
        let nobody = vec![0; algorithm.words()];
        algorithm.debit(&nobody, now, permits, new);
    }
}

/// All algorithms. The first is the default.
pub const REGISTRY: &[Entry] =
    &[token_bucket::ENTRY, fixed_window::ENTRY, sliding_window::ENTRY, leaky_bucket::ENTRY];

/// What rules with `in_flight` count by.
pub const IN_FLIGHT: &Entry = &in_flight::ENTRY;

/// The algorithm that a rule names by a short name.
#[must_use]
pub fn entry(short: &str) -> Option<&'static Entry> {
    REGISTRY.iter().chain([IN_FLIGHT]).find(|entry| entry.short == short)
}
