//! What this worker knows of one caller without asking: permits that it holds for him, and a refusal
//! that still lasts. It only ever knows less than the truth, so forgetting costs a question at most.

use crate::key::Key;
use crate::time::{Micros, Now, SECOND};

/// A caller who comes again within this time is worth a lease; one who does not has his back.
const IDLE: Micros = SECOND / 10;

/// Most permits in a block.
const MOST: u64 = 1 << 16;

/// How long a refusal is remembered at most: permits that others hold may come back.
const REMEMBERED: Micros = SECOND;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lease {
    hash: u64,
    spread: u64,
    /// Permits left of a block.
    left: u64,
    /// Permits to ask for the next time.
    want: u64,
    /// Permits that he is expected to need soon.
    expected: u64,
    block: Block,
    /// When the level above was last asked.
    taken: Micros,
    /// When it must be spent by, on both clocks: should the wall clock be set forward, a window may end
    /// before its time.
    ends: Now,
    /// A block that outlives this one, from when on it may be spent, and when it must be spent by.
    next: Block,
    next_begins: Micros,
    next_ends: Now,
    /// When the caller last came.
    used: Micros,
    /// Until when his refusal is remembered.
    refused: Micros,
    /// When that refusal ends.
    retry: Micros,
    /// Until when he counts as one who wants more than there is.
    short: Micros,
    /// Permits that he was going to need soon when the level above was last asked.
    soon: u64,
    /// Times that he came since the level above was last asked.
    seen: u64,
    /// Whether the level above is being asked for more, while nobody waits for the answer.
    pub(super) asking: bool,
    /// Whether he is on the list of those who may have a block.
    pub(super) listed: bool,
}

/// A block of permits as the gateway knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Block {
    /// Its permits; zero if there is none.
    pub(super) permits: u64,
    /// The term in which it is counted as out.
    pub(super) term: u64,
    /// Under which it was charged.
    pub(super) receipt: u64,
}

impl Lease {
    pub(super) fn of(key: Key) -> Lease {
        Lease { hash: key.hash, spread: key.spread, ..Lease::default() }
    }

    pub(super) fn key(&self) -> Key {
        Key { hash: self.hash, spread: self.spread }
    }

    /// The block, and what is left of it.
    pub(super) fn block(&self) -> (Block, u64) {
        (self.block, self.left)
    }

    pub(super) fn is_out(&self) -> bool {
        self.block.permits > 0 || self.next.permits > 0
    }

    /// A block to be spent after the one in hand, from `begins` on.
    pub(super) fn reserve(&mut self, block: Block, begins: Micros, ends: Now) {
        (self.next, self.next_begins, self.next_ends) = (block, begins, ends);
        self.asking = false;
    }

    /// Takes the next block if the one in hand has not `cost` permits any more and its time has come. The
    /// block before and what is left of it.
    pub(super) fn turn(&mut self, cost: u64, now: Now) -> Option<(Block, u64)> {
        if self.next.permits == 0 || now.mono < self.next_begins || self.has(cost, now) {
            return None;
        }
        let before = self.block();
        (self.block, self.left, self.ends) = (self.next, self.next.permits, self.next_ends);
        (self.next, self.refused) = (Block::default(), 0);
        Some(before)
    }

    /// The next block, which is given up.
    pub(super) fn take_next(&mut self) -> Block {
        std::mem::take(&mut self.next)
    }

    /// Whether the block is over within `ticks`, and there is no other to follow it.
    pub(super) fn ends_soon(&self, ticks: Micros, now: Now) -> bool {
        self.next.permits == 0 && self.ends.mono < now.mono.saturating_add(ticks)
    }

    /// Whether `cost` permits can be spent.
    pub(super) fn has(&self, cost: u64, now: Now) -> bool {
        self.left >= cost && now.mono < self.ends.mono && now.wall < self.ends.wall
    }

    /// Spends permits that the lease has.
    pub(super) fn spend(&mut self, cost: u64, now: Now) {
        self.left = self.left.saturating_sub(cost);
        self.used = now.mono;
    }

    /// Takes back what was spent last.
    pub(super) fn unspend(&mut self, cost: u64) {
        self.left += cost;
    }

    /// The block is no longer out, and its permits may be had again.
    pub(super) fn forget(&mut self) {
        (self.left, self.block, self.refused) = (0, Block::default(), 0);
        (self.next, self.short) = (Block::default(), 0);
    }

    /// Ticks until the refusal ends that is remembered.
    pub(super) fn refused(&self, now: Now) -> Option<Micros> {
        (now.mono < self.refused).then(|| self.retry.saturating_sub(now.mono))
    }

    /// Remembers a refusal, not for long if permits may come back before it ends.
    pub(super) fn refuse(&mut self, now: Now, ticks: Micros, may_come_back: bool) {
        self.short = now.mono.saturating_add(IDLE);
        let remembered = if may_come_back { ticks.min(REMEMBERED) } else { ticks };
        self.refused = now.mono.saturating_add(remembered);
        self.retry = now.mono.saturating_add(ticks);
    }

    /// He came once more.
    pub(super) fn see(&mut self) {
        self.seen += 1;
    }

    /// The level above is asked by one who is going to need so many permits soon.
    pub(super) fn ask(&mut self, soon: u64, now: Now) {
        (self.taken, self.seen, self.asking) = (now.mono, 0, true);
        self.soon = soon;
    }

    /// Ticks since the level above was last asked.
    pub(super) fn since_asked(&self, now: Now) -> Micros {
        now.mono.saturating_sub(self.taken)
    }

    /// The level above said how much is left there.
    pub(super) fn hear(&mut self, left: u64, now: Now) {
        let short = if left < self.soon { now.mono.saturating_add(IDLE) } else { 0 };
        self.short = self.short.max(short);
    }

    /// Whether there was too little for him a moment ago.
    pub(super) fn is_short(&self, now: Now) -> bool {
        now.mono < self.short
    }

    /// Whether that is so and he came often since, so that he may be refused until the level above
    /// has been asked anew, too.
    pub(super) fn is_pressing(&self, now: Now) -> bool {
        self.is_short(now) && (self.asking || self.seen > 1)
    }

    /// Whether what is left will not last much longer.
    pub(super) fn runs_low(&self) -> bool {
        self.block.permits > 0 && self.left <= self.block.permits / 2
    }

    /// Permits that he is going to need in the next `ticks`, at the pace at which he came since the
    /// level above was last asked.
    pub(super) fn need(&self, cost: u64, ticks: Micros, now: Now) -> u64 {
        let elapsed = self.since_asked(now).max(ticks / 8).max(1);
        (self.seen.saturating_mul(ticks) / elapsed).saturating_mul(cost)
    }

    /// He is expected to need so many permits within [`IDLE`].
    pub(super) fn foresee(&mut self, permits: u64) {
        self.expected = permits.min(MOST);
    }

    /// How many permits to ask for: twice as many as the last time if those did not last, though no more
    /// than he comes back for before he counts as idle; none for one who comes rarely.
    pub(super) fn want(&mut self, cost: u64, now: Now) -> u64 {
        if now.mono.saturating_sub(self.used.max(self.taken)) >= IDLE {
            self.want = 0;
        } else if self.since_asked(now) < IDLE {
            self.want = self.want.saturating_mul(2).clamp(cost, MOST.max(cost));
        }
        self.want = self.want.min(self.need(cost, IDLE, now).max(cost));
        self.want = self.want.max(std::mem::take(&mut self.expected));
        self.want
    }

    /// A new block that may be kept for `life` ticks, of which nothing is spent yet; what was left of
    /// the old one is gone.
    pub(super) fn renew(&mut self, block: Block, life: Micros, now: Now) {
        self.ends = now.later(life);
        (self.block, self.left) = (block, block.permits);
        (self.used, self.refused, self.asking) = (now.mono, 0, false);
    }

    /// Whether the block should be given back.
    pub(super) fn is_idle(&self, now: Now) -> bool {
        let over = !self.has(0, now) && self.next.permits == 0;
        self.is_out() && (over || now.mono.saturating_sub(self.used) >= IDLE)
    }
}
