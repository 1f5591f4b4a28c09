//! An authority outside of the gateway, which counts for the whole fleet: the interface of a crate
//! with stores that count there.
//!
//! Its stores decide at once while they can. Otherwise a reservation is pending, and [`Store::ask`]
//! returns its question. [`Backend::send`] sends the questions of one request. Once all of them have
//! a result, [`Backend::next_complete`] returns the request with its replies, by which
//! [`Store::check`] decides its reservations.
//!
//! The owner of the connection makes the calls that are due, and passes the replies to it.

use crate::question::{Question, Refusals};
use crate::replies::Replies;
use crate::stores::Stores;
use crate::{Account, CounterSpec, Store};
use diana_policy::Ban;
use diana_policy::key::{Key, Seed};
use diana_policy::time::Micros;

/// An authority outside of the gateway, and the connection to it.
pub trait Backend {
    /// Opens the store of the rule with this number in its limiter. `None` if the authority cannot
    /// count by the rule's algorithm.
    fn open(
        &mut self,
        rule: usize,
        spec: CounterSpec,
        stores: &mut Stores<'_>,
    ) -> Option<Box<dyn Store>>;

    /// Opens the bans of the rule with this number, fingerprint and parameters.
    fn open_bans(
        &mut self,
        rule: usize,
        fingerprint: u64,
        ban: &Ban,
        spec: &CounterSpec,
    ) -> Box<dyn BanAuthority>;

    /// The seed of the hashes of callers that it counts.
    fn seed(&self) -> Seed;

    /// The shard that counts a caller. Each shard charges its rules together or not at all, and may
    /// be unavailable alone.
    fn shard(&self, caller: Key) -> u16;

    /// The number of unavailable shards.
    fn unavailable_shards(&self) -> usize;

    /// Sends questions with the next batch, for the request or order with this number. It has waited
    /// since `since`, and other rules hold it for `delay` ticks.
    fn send(&mut self, id: u64, questions: Vec<Question>, delay: Micros, since: Micros);

    /// Reads the state of the authority that all workers share, and probes its unavailable shards
    /// from now on.
    fn probe(&mut self);

    /// The next request, order or operation that is complete: a question without a reply in time
    /// has a result, too.
    fn next_complete(&mut self) -> Option<(Receiver, Replies)>;

    /// The counts since the last call.
    fn take_counts(&mut self) -> BackendCounts;
}

/// The receiver of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiver {
    /// The request or order with this number.
    Request(u64),
    /// The store of the rule with this number, about a caller. No request waits.
    Store(usize, Account),
    /// The bans of the rule with this number, about a caller. No request waits.
    Bans(usize, Key),
}

/// Events since the last flush.
#[derive(Debug, Default)]
pub struct BackendCounts {
    /// Calls sent, and the asks in them.
    pub calls: u64,
    /// See `calls`.
    pub asks: u64,
    /// Corrupt values at the authority. The metric is called `foreign`.
    pub corrupt: u64,
    /// Replies that report gateways with another number of shards.
    pub apart: u64,
    /// Replies of a store that the gateway had left for another one: it reaches several.
    pub split: u64,
    /// Settlements dropped for lack of room while the authority was unavailable.
    pub unsettled: u64,
    /// Shards that became unavailable, or available again.
    pub changes: u64,
    /// Failures by name, with their counts.
    pub failures: Vec<(&'static str, u64)>,
}

impl BackendCounts {
    /// Counts a failure.
    pub fn fail(&mut self, name: &'static str) {
        match self.failures.iter_mut().find(|(known, _)| *known == name) {
            Some((_, amount)) => *amount += 1,
            None => self.failures.push((name, 1)),
        }
    }
}

/// The bans of one rule at an authority.
pub trait BanAuthority {
    /// The question whether a caller is banned.
    fn question(&self, caller: Key) -> Refusals;

    /// Counts refusals of the caller; with zero, only reads its ban. No request waits for the
    /// result. Returns false while the authority is unavailable.
    fn count(&self, caller: Key, refusals: u64) -> bool;
}
