//! What this worker knows of one caller without asking: permits that it holds, and a refusal that
//! still lasts. It only ever knows less than the truth, so forgetting costs a question at most.

mod demand;
mod refusal;

pub(crate) use demand::Demand;
pub(crate) use refusal::RECHECK;
pub(crate) use refusal::{Refusal, Remembered};

use crate::key::Key;
use crate::time::{Micros, Now, SECOND};

/// Ticks that a lease lives at most; one that is used up faster is renewed.
pub(crate) const LIFE: Micros = SECOND / 10;

/// A block from which nothing was spent for so long goes back; sooner if there was nothing left at the level
/// above, where others may wait for it.
const IDLE: Micros = SECOND / 20;
const IDLE_WHEN_DRY: Micros = SECOND / 50;

/// How long a caller counts as one who wants more than there is.
const SHORT: Micros = SECOND / 10;

/// After more of a caller's requests waited than may wait, how long none of them waits for permits that
/// only have to gather: those that were refused are told to come again after a second.
const CROWDED: Micros = SECOND;

/// What a worker knows of one caller.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lease {
    hash: u64,
    second_hash: u64,
    /// Permits left of a block.
    left: u64,
    block: Block,
    /// When it must be spent by, on both clocks: should the wall clock be set forward, a window may end
    /// before its time.
    ends: Now,
    /// A block that outlives this one, from when on it may be spent, and when it must be spent by.
    next: Block,
    next_begins: Micros,
    next_ends: Now,
    /// When the caller last came for permits of a block, or got one.
    used: Micros,
    pub(crate) demand: Demand,
    pub(crate) refusal: Remembered,
    /// Until when the caller counts as one who wants more than there is, and as one of whom too many
    /// requests waited.
    short: Micros,
    crowded: Micros,
    /// Until when others are believed to hold what there is, and how many of the caller's requests wait here
    /// for that.
    dry: Micros,
    pub(crate) waiting: u64,
    /// Permits left at the level above when it last answered.
    pub(crate) above: u64,
    /// Permits that the caller was going to need soon when the level above was last asked, and when.
    soon: u64,
    asked: Micros,
    /// Whether the level above is being asked for more.
    pub(crate) asking: bool,
    /// Whether it is on the list of those that may have a block.
    pub(crate) listed: bool,
    /// The plan by which all of it was found out.
    pub(crate) plan: u32,
}

/// A block of permits as the level above knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Block {
    /// Its permits; zero if there is none.
    pub(crate) permits: u64,
    /// The term in which it is counted as out.
    pub(crate) term: u64,
    /// Under which it was charged.
    pub(crate) receipt: u64,
}

impl Lease {
    pub(crate) fn of(key: Key) -> Lease {
        Lease { hash: key.hash, second_hash: key.second_hash, ..Lease::default() }
    }

    pub(crate) fn key(&self) -> Key {
        Key { hash: self.hash, second_hash: self.second_hash }
    }

    /// The block, and what is left of it.
    pub(crate) fn block(&self) -> (Block, u64) {
        (self.block, self.left)
    }

    /// Permits that are not spent yet.
    pub(crate) fn left(&self) -> u64 {
        self.left.saturating_add(self.next.permits)
    }

    pub(crate) fn is_out(&self) -> bool {
        self.block.permits > 0 || self.next.permits > 0
    }

    /// A block to be spent after the one in hand, from `begins` on.
    pub(crate) fn reserve(&mut self, block: Block, begins: Micros, ends: Now) {
        (self.next, self.next_begins, self.next_ends) = (block, begins, ends);
        self.asking = false;
    }

    /// Takes the next block if the one in hand has not `cost` permits any more and its time has come. The
    /// block before and what is left of it.
    pub(crate) fn turn(&mut self, cost: u64, now: Now) -> Option<(Block, u64)> {
        if self.next.permits == 0 || now.mono < self.next_begins || self.has(cost, now) {
            return None;
        }
        let before = self.block();
        (self.block, self.left, self.ends) = (self.next, self.next.permits, self.next_ends);
        self.next = Block::default();
        self.refusal.clear();
        Some(before)
    }

    /// The block in hand if nothing is left of it, so that it is counted as out no longer than need be; none otherwise.
    pub(crate) fn take_used_up(&mut self) -> (Block, u64) {
        let block = if self.left == 0 { std::mem::take(&mut self.block) } else { Block::default() };
        (block, 0)
    }

    /// The next block, which is given up.
    pub(crate) fn take_next(&mut self) -> Block {
        std::mem::take(&mut self.next)
    }

    /// Whether the block is over within `ticks`, and there is no other to follow it.
    pub(crate) fn ends_soon(&self, ticks: Micros, now: Now) -> bool {
        self.next.permits == 0 && self.ends.mono < now.mono.saturating_add(ticks)
    }

    /// Whether `cost` permits can be spent.
    pub(crate) fn has(&self, cost: u64, now: Now) -> bool {
        self.left >= cost && now.mono < self.ends.mono && now.wall < self.ends.wall
    }

    /// Spends permits that the lease has.
    pub(crate) fn spend(&mut self, cost: u64, now: Now) {
        self.left = self.left.saturating_sub(cost);
        self.used = now.mono;
    }

    /// Takes back what was spent last.
    pub(crate) fn unspend(&mut self, cost: u64) {
        self.left += cost;
    }

    /// The block is no longer out, and its permits may be had again.
    pub(crate) fn forget(&mut self) {
        (self.left, self.block, self.next) = (0, Block::default(), Block::default());
        self.short = 0;
        self.refusal.clear();
    }

    /// Nothing that was found out about what the caller may use is true under another plan. How often it comes is.
    pub(crate) fn begin_anew(&mut self, plan: u32) {
        self.forget();
        (self.dry, self.crowded, self.above, self.soon) = (0, 0, 0, 0);
        (self.asking, self.plan) = (false, plan);
    }

    /// The level above refused at some instant since `sent`, as became known at `now`.
    pub(crate) fn refuse(&mut self, refusal: Refusal, sent: Now, now: Now) {
        self.short = now.mono.saturating_add(SHORT);
        if refusal.loan > 0 {
            self.dry = now.mono.saturating_add(SHORT);
        }
        self.refusal.set(refusal, sent, now);
    }

    /// The level above refused, perhaps for a charge that is taken back at once.
    pub(crate) fn refuse_shortly(&mut self, refusal: Refusal, now: Now) {
        self.short = now.mono.saturating_add(SHORT);
        self.refusal.set_shortly(refusal, now);
    }

    /// The level above is to be asked by the next request, whatever it said a moment ago, unless it
    /// refused for good.
    pub(crate) fn look_again(&mut self) {
        self.short = 0;
        self.refusal.clear_unless_final();
    }

    /// Too many of the caller's requests wait.
    pub(crate) fn crowd(&mut self, now: Now) {
        self.crowded = now.mono.saturating_add(CROWDED);
    }

    /// Ticks for which a caller waits that comes often and was refused less than `pause` ago, until the
    /// level above is asked again: as long if it may wait, zero if it is refused instead. Nothing if the
    /// level above can be asked now.
    pub(crate) fn pause(&self, pause: Micros, now: Now) -> Option<(Micros, bool)> {
        let rest = pause.checked_sub(self.refusal.age(now)).filter(|rest| *rest > 0)?;
        let pauses = self.is_short(now) && self.demand.pays();
        pauses.then_some((rest, !self.is_crowded(now)))
    }

    /// Whether too many of the caller's requests waited not long ago.
    pub(crate) fn is_crowded(&self, now: Now) -> bool {
        now.mono < self.crowded
    }

    /// The level above is asked by one who is going to need so many permits soon.
    pub(crate) fn ask(&mut self, soon: u64, now: Now) {
        (self.soon, self.asked, self.asking) = (soon, now.mono, true);
    }

    /// Ticks since the level above was last asked for more.
    pub(crate) fn since_asked(&self, now: Now) -> Micros {
        now.mono.saturating_sub(self.asked)
    }

    /// The level above said how much is left there.
    pub(crate) fn hear(&mut self, left: u64, now: Now) {
        self.above = left;
        let short = if left < self.soon { now.mono.saturating_add(SHORT) } else { 0 };
        self.short = self.short.max(short);
        if left == 0 {
            self.dry = self.dry.max(short);
        }
    }

    /// Whether there was too little for the caller a moment ago.
    pub(crate) fn is_short(&self, now: Now) -> bool {
        now.mono < self.short
    }

    /// Whether that is so and the caller comes often, so that more is asked for without anybody waiting.
    pub(crate) fn is_pressing(&self, now: Now) -> bool {
        self.is_short(now) && self.demand.pays()
    }

    /// Whether others hold what there is, so that no more is to be taken than is used at once.
    pub(crate) fn is_dry(&self, now: Now) -> bool {
        now.mono < self.dry
    }

    /// Whether what is left will not last much longer.
    pub(crate) fn runs_low(&self) -> bool {
        self.left <= self.block.permits / 2
    }

    /// A new block that may be kept for `life` ticks, of which nothing is spent yet; what was left of
    /// the old one is gone.
    pub(crate) fn renew(&mut self, block: Block, life: Micros, now: Now) {
        self.ends = now.later(life.min(LIFE));
        (self.block, self.left) = (block, block.permits);
        (self.used, self.asking) = (now.mono, false);
        self.refusal.clear();
    }

    /// Whether everything should be given back.
    pub(crate) fn is_idle(&self, now: Now) -> bool {
        let over = !self.has(0, now) && self.next.permits == 0;
        let longest = if self.above == 0 { IDLE_WHEN_DRY } else { IDLE };
        self.is_out() && (over || now.mono.saturating_sub(self.used) >= longest)
    }

    /// Whether a block was to be spent after the one in hand, and its time is over.
    pub(crate) fn is_next_over(&self, now: Now) -> bool {
        self.next.permits > 0 && now.mono >= self.next_ends.mono
    }
}
