//! A worker's knowledge of one caller: permits leased from the authority (the gateway's shared
//! data, or Redis), and its latest refusal. Forgetting it costs only one more request to the
//! authority.
//!
//! A lease is small and short: the expected demand of the next `AHEAD`, for at most `LIFE`.
//! Unspent permits then return to the authority.

use crate::refusal::{Reason, Refused};
use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now, SECOND};

/// How long leased permits may be spent.
pub(crate) const LIFE: Micros = SECOND / 20;

/// A lease covers the expected demand of this time.
const AHEAD: Micros = SECOND / 50;

/// How long a refusal is remembered at most, since the limit itself may have changed by then.
const FINAL: Micros = SECOND;

/// The same for a refusal that may be outdated at any time, for example when other workers return
/// leases.
const PROVISIONAL: Micros = SECOND / 50;

/// A busy caller that was refused within this time is refused again while a request to the
/// authority is pending, even if it got a lease since. Otherwise each request of a flood would be
/// sent to Redis.
const RECENT: Micros = SECOND / 10;

/// A worker's knowledge of one caller.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lease {
    key: Key,
    /// The plan to which the lease and the refusal belong.
    pub plan: u64,
    block: Block,
    /// Unspent permits of the block.
    left: u64,
    /// The end of the block on both clocks, since a window ends early if the wall clock is set
    /// forward.
    ends: Now,
    demand: Demand,
    refusal: CachedRefusal,
    /// Remaining permits at the authority, by its latest reply.
    pub remaining_at_authority: u64,
    /// Whether a request that may lease a block is pending.
    pub is_asking: bool,
    /// Whether the table of leases lists its block for return.
    pub(crate) is_listed: bool,
}

/// A lease as the authority counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Block {
    /// Zero if there is no block.
    pub permits: u64,
    /// The lease term in which it counts as outstanding.
    pub term: u64,
    /// The receipt of its charge.
    pub receipt: u64,
}

/// A decision by a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseDecision {
    /// The leased permits suffice.
    Leased,
    /// A recent refusal still applies.
    Refused(Refused),
    /// Only the authority can decide.
    Undecided,
}

impl Lease {
    pub(crate) fn of(key: Key, plan: u64) -> Lease {
        Lease { key, plan, ..Lease::default() }
    }

    pub(crate) fn key(&self) -> Key {
        self.key
    }

    /// Decides a request of `cost` permits, and counts it as demand.
    pub(crate) fn decide(&mut self, cost: u64, now: Now) -> LeaseDecision {
        self.demand.count(now);
        if self.has(cost, now) {
            return LeaseDecision::Leased;
        }
        if let Some(refusal) = self.refusal.at(cost, now) {
            return LeaseDecision::Refused(refusal);
        }
        let was_refused = self.refusal.age(now) < RECENT;
        if self.is_asking && was_refused && self.demand.is_busy() {
            return LeaseDecision::Refused(Refused {
                reason: Reason::Outstanding,
                retry: Retry::After(SECOND),
                remaining: Some(0),
            });
        }
        LeaseDecision::Undecided
    }

    /// Permits to lease if each request takes `cost`; zero unless the caller is busy.
    pub fn permits_to_lease(&self, cost: u64, now: Now) -> u64 {
        self.demand.expected(cost, now)
    }

    /// The block, and its unspent permits.
    pub fn block(&self) -> (Block, u64) {
        (self.block, self.left)
    }

    pub(crate) fn has_block(&self) -> bool {
        self.block.permits > 0
    }

    /// Returns true if `cost` permits can be spent.
    pub(crate) fn has(&self, cost: u64, now: Now) -> bool {
        self.left >= cost && now.mono < self.ends.mono && now.wall < self.ends.wall
    }

    /// Returns true if it is time to request the next block, before this one is spent or ends.
    pub fn runs_low(&self, now: Now) -> bool {
        let ends_soon = self.ends.mono < now.mono.saturating_add(AHEAD / 2);
        self.left <= self.block.permits / 2 || ends_soon
    }

    /// Spends leased permits.
    pub(crate) fn spend(&mut self, cost: u64) {
        self.left = self.left.saturating_sub(cost);
    }

    /// Returns permits of the latest spend.
    pub(crate) fn unspend(&mut self, cost: u64) {
        self.left += cost;
    }

    /// Stores a new block, to be spent within `life` ticks of `now`. Returns the previous block,
    /// for return to the authority.
    pub(crate) fn renew(&mut self, block: Block, life: Micros, now: Now) -> (Block, u64) {
        let before = self.block();
        self.ends = now.later(life.min(LIFE));
        (self.block, self.left, self.is_asking) = (block, block.permits, false);
        self.refusal.until = 0;
        before
    }

    /// Switches to another plan. Only the caller's demand stays valid.
    pub(crate) fn change_plan(&mut self, plan: u64) {
        *self =
            Lease { demand: self.demand, is_listed: self.is_listed, ..Lease::of(self.key, plan) };
    }

    /// Removes the block.
    pub(crate) fn take_block(&mut self) -> (Block, u64) {
        (std::mem::take(&mut self.block), std::mem::take(&mut self.left))
    }

    /// Remembers a refusal of `cost` permits by the authority, which decided at `sent` or later.
    /// The refusal arrived at `now`. One that is not final is remembered only briefly, since a
    /// charge that is cancelled at once may have caused it.
    pub fn refuse(&mut self, cost: u64, refused: Refused, is_final: bool, (sent, now): (Now, Now)) {
        self.is_asking = false;
        let Retry::After(retry) = refused.retry else { return };
        let is_final = is_final && refused.reason != Reason::Outstanding;
        let longest = if is_final { FINAL } else { PROVISIONAL };
        let until = sent.mono.saturating_add(retry.min(longest));
        let (reason, remaining) = (refused.reason, refused.remaining.unwrap_or(0));
        self.refusal = CachedRefusal { cost, reason, retry, remaining, since: now.mono, until };
    }

    /// Forgets the latest refusal.
    pub fn forget_refusal(&mut self) {
        self.refusal.clear();
    }

    /// Returns true if the block must be returned.
    pub(crate) fn has_ended(&self, now: Now) -> bool {
        self.has_block() && (self.left == 0 || !self.has(0, now))
    }
}

/// The latest refusal of one caller.
#[derive(Debug, Clone, Copy, Default)]
struct CachedRefusal {
    /// Permits of the refused request. Cheaper requests may be admitted.
    cost: u64,
    reason: Reason,
    /// Ticks until the request would be admitted, from its arrival.
    retry: Micros,
    remaining: u64,
    /// When it arrived; zero if there was none.
    since: Micros,
    /// Zero if permits were leased since.
    until: Micros,
}

impl CachedRefusal {
    fn clear(&mut self) {
        *self = CachedRefusal::default();
    }

    /// The refusal for a request of `cost` permits at `now`, if it still applies. A more expensive
    /// request may have to wait longer, and gets its retry delay at its next attempt.
    fn at(&self, cost: u64, now: Now) -> Option<Refused> {
        let CachedRefusal { reason, remaining, .. } = *self;
        let age = now.mono.saturating_sub(self.since);
        let retry = Retry::After(self.retry.saturating_sub(age).max(1));
        let lasts = now.mono < self.until && cost >= self.cost;
        lasts.then_some(Refused { reason, retry, remaining: Some(remaining) })
    }

    /// Ticks since it arrived, or the maximum if there was none.
    fn age(&self, now: Now) -> Micros {
        if self.since == 0 { Micros::MAX } else { now.mono.saturating_sub(self.since) }
    }
}

/// The demand of a caller in this worker: requests in the current span and in the previous one.
#[derive(Debug, Clone, Copy, Default)]
struct Demand {
    /// The start of the current span.
    since: Micros,
    current: u32,
    previous: u32,
}

impl Demand {
    const SPAN: Micros = SECOND / 10;

    /// Requests in one to two spans from which on a caller is busy, which is 100 to 200 a second.
    /// Below that, each request is sent to the authority, so that no worker leases permits that the
    /// caller needs in another one.
    const BUSY: u32 = 20;

    /// The shortest time over which demand is measured.
    const SHORTEST: Micros = SECOND / 80;

    /// The maximum expected demand, in permits.
    const MOST: u64 = 1 << 16;

    /// Counts a request.
    fn count(&mut self, now: Now) {
        let age = now.mono.saturating_sub(self.since);
        if age >= 2 * Demand::SPAN {
            (self.since, self.previous, self.current) = (now.mono, 0, 0);
        } else if age >= Demand::SPAN {
            self.since += Demand::SPAN;
            (self.previous, self.current) = (self.current, 0);
        }
        self.current += 1;
    }

    fn is_busy(&self) -> bool {
        self.previous + self.current >= Demand::BUSY
    }

    /// Permits that a busy caller takes in the next `AHEAD`, if each request takes `cost`.
    fn expected(&self, cost: u64, now: Now) -> u64 {
        if !self.is_busy() {
            return 0;
        }
        let previous = if self.previous > 0 { Demand::SPAN } else { 0 };
        let elapsed = (previous + now.mono.saturating_sub(self.since)).max(Demand::SHORTEST);
        let requests = (u64::from(self.previous + self.current) * AHEAD / elapsed).max(1);
        requests.saturating_mul(cost).min(Demand::MOST.max(cost))
    }
}
