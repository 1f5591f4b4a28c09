//! The lease of a gateway in shared data, and the parts of its block that workers have.

use super::{Block, CachedRefusal, Demand, Lease, Pace, Reason, Wanted};
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now, SECOND};

/// A lease of a gateway, and the parts of its block that workers have.
impl Lease {
    /// Words of a lease of a gateway.
    pub(crate) const WORDS: usize = 22;

    /// Reads a lease of a gateway.
    pub(crate) fn of_words(words: &[u64; Lease::WORDS]) -> Lease {
        let [
            hash,
            second_hash,
            plan,
            permits,
            term,
            receipt,
            left,
            mono,
            wall,
            since,
            before,
            rest @ ..,
        ] = *words;
        let [counts, cost, flags, retry, remaining, refused, until, rest @ ..] = rest;
        let [pause, refused_at, remaining_at_authority, asking_until] = rest;
        let count = |word: u64| (word as u32).min(Demand::FULL);
        let reason = if flags & 1 > 0 { Reason::Outstanding } else { Reason::Used };
        Lease {
            block: Block { permits, term, receipt },
            left,
            ends: Now { mono, wall },
            demand: Demand { since, before, current: count(counts), previous: count(counts >> 32) },
            refusal: CachedRefusal { cost, reason, retry, remaining, since: refused, until },
            pause,
            refused_at,
            remaining_at_authority,
            asking_until,
            ends_with_window: flags & 2 > 0,
            has_requests: flags & 4 > 0,
            ..Lease::of(Key { hash, second_hash }, plan)
        }
    }

    /// The words of a lease of a gateway.
    pub(crate) fn words(&self) -> [u64; Lease::WORDS] {
        let Lease { key: Key { hash, second_hash }, plan, block, left, ends, .. } = *self;
        let Block { permits, term, receipt } = block;
        let Demand { since, before, current, previous } = self.demand;
        let CachedRefusal { cost, reason, retry, remaining, since: refused, until } = self.refusal;
        let flags = u64::from(reason == Reason::Outstanding)
            | u64::from(self.ends_with_window) << 1
            | u64::from(self.has_requests) << 2;
        [
            hash,
            second_hash,
            plan,
            permits,
            term,
            receipt,
            left,
            ends.mono,
            ends.wall,
            since,
            before,
            u64::from(current) | u64::from(previous) << 32,
            cost,
            flags,
            retry,
            remaining,
            refused,
            until,
            self.pause,
            self.refused_at,
            self.remaining_at_authority,
            self.asking_until,
        ]
    }

    /// Returns true if another caller may use its memory: it has no block, or its workers do not
    /// return it.
    pub(crate) fn is_over(&self, now: Micros) -> bool {
        let rest = if self.left > 0 { SECOND } else { 0 };
        !self.has_block() || self.ends.mono.saturating_add(rest) < now
    }

    /// Returns true if requests of this caller are so frequent in a worker that its gateway may have a
    /// lease. Others take no memory there.
    #[must_use]
    pub fn is_frequent(&self) -> bool {
        self.is_known || self.demand.requests() >= Demand::FREQUENT.into()
    }

    /// The demand of a worker. Its gateway counts the requests from now on.
    pub fn take_counts(&mut self) -> Lease {
        self.is_known = true;
        let uncounted = std::mem::take(&mut self.uncounted);
        Lease { uncounted, ..*self }
    }

    /// The requests that were not counted yet when the demand of a worker was [taken](Lease::take_counts).
    #[must_use]
    pub fn uncounted(&self) -> u32 {
        self.uncounted
    }

    /// Counts requests as demand.
    pub fn count(&mut self, requests: u32, now: Now, pace: Pace) {
        if requests > 0 {
            self.has_requests = true;
            self.demand.count(requests, now, pace);
        }
    }

    /// The end of the block.
    #[must_use]
    pub fn ends(&self) -> Micros {
        self.ends.mono
    }

    /// Takes back the part of a worker. Returns false if it is a part of another block.
    #[must_use]
    pub fn merge(&mut self, part: Block, left: u64) -> bool {
        let is_same = part.is_charged_as(self.block);
        if is_same && self.ends.mono > 0 {
            self.block.permits += part.permits;
            self.left += left;
        }
        part.permits == 0 || is_same && self.ends.mono > 0
    }

    /// Gives a part of its block to a worker, with at least `least` permits, which it has. `own` is the lease of
    /// that worker.
    pub fn give(&mut self, own: &Lease, least: u64, cost: u64, now: Now, pace: Pace) -> Block {
        if !self.has(least, now) {
            return Block::default();
        }
        let Wanted { ahead, .. } = self.wanted(cost, now, pace);
        let (all, part) = (&self.demand, &own.demand);
        let [all, part] = [all, part].map(|demand| demand.within(ahead, cost, now));
        // Half of its demand, or all of it where no other worker has any, while the others find their
        // parts.
        let of = |permits: u64| permits.saturating_mul(part) / all.max(1);
        let fair = (part / 2).max(of(part)).min(part).min(of(self.left));
        let permits = fair.max(least).min(self.left);
        self.left -= permits;
        self.block.permits = self.block.permits.saturating_sub(permits);
        Block { permits, ..self.block }
    }

    /// The part of these permits of a worker that spares the block of its gateway.
    pub fn spared(&self, own: &Lease, permits: u64, now: Now, pace: Pace) -> u64 {
        let [all, part] =
            [&self.demand, &own.demand].map(|demand| demand.within(pace.span, 1, now));
        permits.saturating_mul(part) / all.max(1).max(part)
    }

    /// Returns true unless it is unlikely that another request comes before a question has its reply.
    pub(crate) fn has_next(&self, now: Now, pace: Pace) -> bool {
        self.demand.within(16 * pace.notice, 1, now) > 0
    }

    /// Removes the spent permits of a block for return, or all of them.
    pub(crate) fn take_before_next(&mut self, keeps_rest: bool, now: Now) -> (Block, u64) {
        let lasts = self.has(0, now);
        let left = if keeps_rest { self.left } else { 0 };
        let unspent = std::mem::replace(&mut self.left, left) - left;
        let permits = std::mem::replace(&mut self.block.permits, left).saturating_sub(left);
        if lasts {
            self.remaining_at_authority = self.remaining_at_authority.saturating_add(unspent);
        }
        (Block { permits, ..self.block }, unspent)
    }

    /// Stores a part of the block of its gateway. The lease of the gateway has the `rest`.
    pub(crate) fn take_part(&mut self, part: Block, rest: &Lease, cost: u64, now: Now, pace: Pace) {
        self.remaining_at_authority = rest.remaining();
        self.looks_at = match rest.runs_low(rest.left, cost, now, pace) {
            true => self.looks_at.min(now.mono.saturating_add(pace.pause_of_looks())),
            false => rest.ends.mono.saturating_sub(pace.notice),
        };
        if part.permits > 0 {
            (self.block, self.left) = (part, part.permits);
            (self.ends, self.ends_with_window) = (rest.ends, rest.ends_with_window);
            self.refusal.until = 0;
        }
    }

    /// Returns true if it is time to look for further permits of the gateway, or for its next block,
    /// which a worker does once in a while.
    pub fn looks_ahead(&mut self, cost: u64, now: Now, pace: Pace) -> bool {
        let looks = now.mono >= self.looks_at && self.is_due(0, cost, now, pace);
        if looks {
            self.looks_at = now.mono.saturating_add(pace.pause_of_looks());
        }
        looks
    }
}
