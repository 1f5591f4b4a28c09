//! The knowledge of a worker or a gateway about one caller: permits leased from the authority (the
//! gateway's shared data, or Redis), and the latest refusal. Forgetting it costs only one more request to the
//! authority.
//!
//! A lease is small and short: the caller's expected demand in a time that its [`Pace`] bounds.
//! Unspent permits then return to the authority. Blocks of Redis belong to the gateway
//! (`gateway_leases.rs`), and its workers take [parts](Lease::give) of them.

mod demand;
mod gateway;

use crate::refusal::{Reason, Refused};
use crate::replies::RuleReply;
use demand::Demand;
use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now, SECOND};

/// The longest life of a lease: shorter than the term in which Redis counts it as outstanding.
const LONGEST: Micros = SECOND * 2 / 5;

/// How long a block counts as outstanding at least, from before the call: the length of a term.
const COUNTED: Micros = SECOND / 2;

/// The terms of Redis in which a block counts as outstanding: parts of the same one can be merged.
const LONG: u64 = 5;

/// The shortest time of demand that a lease covers.
const AHEAD: Micros = SECOND / 50;

/// A lease covers the demand of the time in which about this number of requests come.
const REQUESTS: u64 = 10;

/// The least requests of a busy caller within a certain time.
const LEAST: u64 = 4;

/// Requests beyond the expected ones in a block: one for each `SPARED` ticks of its window, at most `SPARE`.
const SPARED: Micros = SECOND / 2;
const SPARE: u64 = 6;

/// A block is at most this part of a limit: when a burst takes the whole limit, no more permits are elsewhere.
const PARTS: u64 = 8;

/// How the leases of an authority follow demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The longest span in which demand is counted.
    pub span: Micros,
    /// The shortest and the longest time of demand that a lease covers.
    pub ahead: (Micros, Micros),
    /// Requests in one to two spans from which on a caller may be busy. Below that, each request is
    /// sent to the authority, so that no lease has permits that the caller needs elsewhere.
    pub requests: u64,
    /// A caller is busy if `LEAST` requests come within this time.
    pub busy: Micros,
    /// Requests beyond the expected ones that the longest lease covers, so that it lasts as long as expected.
    pub spare: u64,
    /// The permits of a block at most; no blocks if they are fewer than those of `LEAST` requests.
    pub most: u64,
    /// How long before the end of a lease the next one is requested.
    pub notice: Micros,
    /// How long a question may be pending.
    pub patience: Micros,
}

impl Pace {
    /// Of shared data, which replies at once.
    pub const GATEWAY: Pace = Pace {
        span: SECOND / 10,
        ahead: (AHEAD, AHEAD),
        requests: 20,
        busy: Micros::MAX,
        spare: 0,
        most: u64::MAX,
        notice: 0,
        patience: 0,
    };

    /// Of an authority that replies after about `trip`, and after `patience` at most, for a rule with
    /// permits that end within `window`, of which `limit` can be spent soon. A question may wait for the reply to an earlier one.
    #[must_use]
    pub fn of_fleet(trip: Micros, patience: Micros, window: Micros, limit: u64) -> Pace {
        let notice = trip.saturating_mul(2).min(LONGEST);
        let least = notice.max(AHEAD);
        let longest = LONGEST.min(window).max(least);
        // Permits that are unspent at the end of a window are lost. A bucket has no window.
        let spare = if window < Micros::MAX { window / SPARED } else { 0 };
        let ahead = (least, longest);
        Pace {
            span: 2 * SECOND,
            ahead,
            requests: 8,
            busy: longest,
            spare: spare.min(SPARE),
            most: limit / PARTS,
            notice,
            patience,
        }
    }
}

impl Pace {
    /// How long a worker does not look at the lease of its gateway again in advance.
    fn pause_of_looks(&self) -> Micros {
        self.notice.max(SECOND / 1000)
    }
}

/// How long a refusal is remembered at most, since the limit itself may have changed by then.
const FINAL: Micros = SECOND;

/// The same for a refusal that may be outdated at any time, for example when other workers return
/// leases.
const PROVISIONAL: Micros = SECOND / 50;

/// A busy caller that was refused within this time is refused again while a request to the
/// authority is pending, even if it got a lease since. Otherwise each request of a flood would be
/// sent to Redis.
const RECENT: Micros = SECOND / 10;

/// The knowledge of one caller, of a worker or of its gateway.
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
    /// Until then the authority is not asked again, since it has too few permits for all workers;
    /// zero if its latest reply leased the whole block.
    pause: Micros,
    /// When a request was last refused here.
    refused_at: Micros,
    /// Remaining permits at the authority, by its latest reply.
    remaining_at_authority: u64,
    /// Until then a question that may lease a block is pending, unless it has a reply. A worker that
    /// ends without one does not keep others from asking for longer.
    asking_until: Micros,
    /// Whether the block ends with its window.
    ends_with_window: bool,
    /// Whether requests came since the latest question for a block.
    has_requests: bool,
    /// Whether the table of leases lists its block for return.
    pub(crate) is_listed: bool,
    /// Whether the gateway has a lease.
    is_known: bool,
    /// Requests of a worker that the lease of its gateway has not counted yet.
    uncounted: u32,
    /// Until then the worker does not look for further permits in advance.
    looks_at: Micros,
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

impl Block {
    /// Returns true if permits of both can be merged.
    pub(crate) fn is_charged_as(self, other: Block) -> bool {
        self.receipt == other.receipt && self.term / LONG == other.term / LONG
    }
}

/// A block to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Its permits.
    pub permits: u64,
    /// The time in which they are spent.
    pub ahead: Micros,
}

impl Wanted {
    /// The life of the block: permits that a lull leaves can still be spent.
    #[must_use]
    pub fn life(self) -> Micros {
        (self.ahead * 3 / 2).min(LONGEST)
    }
}

/// For how long a block may be spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Ticks.
    pub ticks: Micros,
    /// Whether its window, or slice, ends then.
    pub ends_with_window: bool,
}

impl Life {
    /// Of a block that an authority outside of the gateway leases, from before the call: it begins
    /// when the authority decided. The end of a window is known only from before the call.
    fn of(received: Received<'_>) -> Life {
        let Received { reply, asked, sent, at, .. } = received;
        let is_bounded = reply.spend < LONGEST;
        let life = (at.saturating_sub(sent.mono) + asked.life()).min(COUNTED);
        let ticks = if is_bounded { life.min(reply.spend) } else { life };
        Life { ticks, ends_with_window: is_bounded && ticks == reply.spend }
    }
}

/// How long an authority with too few permits is not asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Pause {
    /// Ticks; zero if it has enough.
    ticks: Micros,
    /// Whether its window, or slice, ends then.
    ends_with_window: bool,
}

/// How an authority leases permits of a rule.
#[derive(Debug, Clone, Copy)]
pub struct Lessor {
    /// Permits per request, at least one.
    pub unit_cost: u64,
    /// How long a saturated bucket is not asked: it must not be full before. `None` for windows.
    pub longest_pause: Option<Micros>,
    /// Whether a refusal may be final.
    pub is_final: bool,
}

impl Lessor {
    /// How long the authority is not asked again, if it has too few permits for all workers: for the
    /// time of a block, or until the window ends after `rest` ticks.
    fn pause(&self, ahead: Micros, rest: Micros) -> Pause {
        match self.longest_pause {
            Some(longest) => Pause { ticks: ahead.min(longest), ends_with_window: false },
            None => Pause { ticks: ahead.min(rest), ends_with_window: rest <= ahead },
        }
    }
}

/// The reply to a question, and the question as far as the lease must know it.
#[derive(Debug, Clone, Copy)]
pub struct Received<'r> {
    /// The reply.
    pub reply: &'r RuleReply,
    /// The permits of the request, or of one that the block is for.
    pub cost: u64,
    /// The charged permits of the request: the cost, or none.
    pub charged: u64,
    /// The block that it asked for.
    pub asked: Wanted,
    /// When it was sent.
    pub sent: Now,
    /// When the authority decided, as estimated.
    pub at: Micros,
    /// When the reply came.
    pub now: Now,
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

    /// The caller.
    #[must_use]
    pub fn key(&self) -> Key {
        self.key
    }

    /// Decides a request of `cost` permits, and counts it as demand.
    pub(crate) fn decide(&mut self, cost: u64, now: Now, pace: Pace) -> LeaseDecision {
        self.uncounted = self.uncounted.saturating_add(1);
        self.demand.count(1, now, pace);
        self.judge(cost, now, pace)
    }

    /// Decides a request of `cost` permits that was counted.
    pub fn judge(&mut self, cost: u64, now: Now, pace: Pace) -> LeaseDecision {
        if self.has(cost, now) {
            return LeaseDecision::Leased;
        }
        let refusal = self.refusal.at(cost, now).or_else(|| self.refuse_busy(now, pace));
        if let Some(refusal) = refusal {
            self.refused_at = now.mono;
            return LeaseDecision::Refused(refusal);
        }
        LeaseDecision::Undecided
    }

    /// The refusal of a busy caller, without a question: one was refused and another one is pending,
    /// or the authority has too few permits. The next lease is then requested in advance.
    fn refuse_busy(&self, now: Now, pace: Pace) -> Option<Refused> {
        let is_recent = |at: Micros| at > 0 && now.mono.saturating_sub(at) < RECENT;
        let was_refused = self.is_asking(now) && is_recent(self.refusal.since);
        let is_paused = now.mono < self.pause || self.pause > 0 && is_recent(self.refused_at);
        let is_refused = self.demand.is_busy(now, pace) && (was_refused || is_paused);
        is_refused.then_some(Refused {
            reason: Reason::Outstanding,
            retry: Retry::After(SECOND),
            remaining: Some(0),
        })
    }

    /// The next block if each request takes `cost`; without permits unless the caller is busy.
    pub fn wanted(&self, cost: u64, now: Now, pace: Pace) -> Wanted {
        self.demand.expected(cost, now, pace)
    }

    /// Records a question for the next block, which it returns as [`Lease::wanted`] does. No block
    /// while another question is pending.
    pub fn ask(&mut self, cost: u64, now: Now, pace: Pace) -> Wanted {
        if self.is_asking(now) {
            return Wanted::default();
        }
        let wanted = self.wanted(cost, now, pace);
        if wanted.permits > 0 {
            self.has_requests = false;
            self.asking_until = now.mono.saturating_add(pace.patience);
        }
        wanted
    }

    fn is_asking(&self, now: Now) -> bool {
        now.mono < self.asking_until
    }

    /// The question for a block has no reply.
    pub fn on_no_reply(&mut self) {
        self.asking_until = 0;
    }

    /// Remaining permits, as far as this worker knows: at the authority by its latest reply, and in
    /// its block.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.remaining_at_authority.saturating_add(self.left)
    }

    /// The block, and its unspent permits.
    pub fn block(&self) -> (Block, u64) {
        (self.block, self.left)
    }

    pub(crate) fn has_block(&self) -> bool {
        self.block.permits > 0
    }

    /// Returns true if `cost` permits can be spent.
    #[must_use]
    pub fn has(&self, cost: u64, now: Now) -> bool {
        self.left >= cost && now.mono < self.ends.mono && now.wall < self.ends.wall
    }

    /// Returns true if it is time to request the next block, so that no request waits for it:
    /// before this one is spent or ends, or before the authority may be asked again.
    /// A worker of its gateway still has `more` permits for the same requests.
    pub fn is_due(&self, more: u64, cost: u64, now: Now, pace: Pace) -> bool {
        let soon = now.mono.saturating_add(pace.notice);
        // A refusal that ends with its window: the question arrives in the next one.
        let renews = now.mono < self.refusal.until
            && self.refusal.until <= now.mono.saturating_add(pace.notice / 4);
        let may_ask = match self.pause {
            0 if now.mono < self.refusal.until => renews,
            0 => self.ends.mono > 0,
            pause => pause.max(self.refusal.until) <= soon,
        };
        !self.is_asking(now)
            && may_ask
            && (renews
                || self.runs_low(self.left.saturating_add(more), cost, now, pace)
                || self.ends_soon(now, pace))
    }

    /// Returns true if the block ends before a question has its reply. A question that comes before the
    /// end of the window gets another block that ends with it.
    fn ends_soon(&self, now: Now, pace: Pace) -> bool {
        let ahead = if self.ends_with_window { pace.notice / 4 } else { pace.notice };
        self.ends.mono < now.mono.saturating_add(ahead)
    }

    /// Returns true if the next block is due without a request, since requests of a busy caller came:
    /// soon after a refusal, at the end of a pause, or `early` ticks before the end of a block.
    pub fn continues(&self, cost: u64, now: Now, early: Micros, pace: Pace) -> bool {
        let soon = now.mono.saturating_add(early);
        let is_due = match (self.pause, self.refusal.until) {
            (0, 0) => !self.ends_with_window && self.has(0, now) && self.ends.mono <= soon,
            (0, refused) => refused <= now.mono.saturating_add(pace.notice / 4),
            (pause, refused) => pause.max(refused) <= soon,
        };
        let is_slow = self.demand.within(early, 1, now) == 0;
        let wants = self.has_requests && self.wanted(cost, now, pace).permits > 0;
        is_due && is_slow && wants && !self.is_asking(now)
    }

    /// Until when a worker looks whether the next block is due, from `early` ticks before. In a new window,
    /// which begins in all gateways at once, each waits for its own time.
    pub fn continues_until(&self, early: Micros, now: Now) -> Micros {
        match (self.pause, self.refusal.until) {
            (0, 0) => self.ends.mono,
            (0, refused) => {
                let among = self.demand.time_of(2, now).max(1);
                refused.saturating_add(early).saturating_add(refused % among)
            }
            (pause, refused) => pause.max(refused),
        }
    }

    /// Returns true if `left` permits may be spent before a question has its reply.
    fn runs_low(&self, left: u64, cost: u64, now: Now, pace: Pace) -> bool {
        let rest = self.ends.mono.saturating_sub(now.mono);
        let notice = if self.ends_with_window { pace.notice.min(rest) } else { pace.notice };
        let expected = self.demand.within(notice, cost, now);
        left <= expected.saturating_add(expected.min(2 * cost)).saturating_add(cost)
    }

    /// Spends leased permits.
    pub(crate) fn spend(&mut self, cost: u64) {
        self.left = self.left.saturating_sub(cost);
    }

    /// Returns permits of the latest spend, unless the block was returned since.
    pub(crate) fn unspend(&mut self, cost: u64) {
        if self.has_block() {
            self.left += cost;
        }
    }

    /// Stores a new block, to be spent within `life` ticks of `since`. Returns the previous block,
    /// for return to the authority.
    pub(crate) fn renew(&mut self, block: Block, life: Life, since: Now) -> (Block, u64) {
        let before = self.block();
        self.ends = since.later(life.ticks);
        self.ends_with_window = life.ends_with_window;
        (self.block, self.left) = (block, block.permits);
        self.refusal.until = 0;
        before
    }

    /// Switches to another plan. Only the caller's demand stays valid.
    pub fn change_plan(&mut self, plan: u64) {
        let Lease { key, demand, is_listed, is_known, uncounted, .. } = *self;
        *self = Lease { demand, is_listed, is_known, uncounted, ..Lease::of(key, plan) };
    }

    /// Removes the block.
    pub fn take_block(&mut self) -> (Block, u64) {
        self.ends = Now::default();
        (std::mem::take(&mut self.block), std::mem::take(&mut self.left))
    }

    /// The authority admits a request, or only leases a block. Returns the block that another one
    /// follows.
    pub fn on_admission(&mut self, received: Received<'_>, lessor: Lessor) -> (Block, u64) {
        let Received { reply, asked: Wanted { permits, ahead }, sent, now, .. } = received;
        let block = reply.leased();
        self.remaining_at_authority = reply.remaining;
        let lasts = self.has(0, now);
        let before = match block.permits {
            0 => Default::default(),
            _ => self.renew(block, Life::of(received), sent),
        };
        let before = self.keep(before);
        // Permits of a former window do not return.
        let back = if lasts { before.1 } else { 0 };
        self.remaining_at_authority = self.remaining_at_authority.saturating_add(back);
        // A block is smaller, too, if its window ends before it would be spent.
        let in_time = permits.saturating_mul(reply.spend.min(ahead)) / ahead.max(1);
        // A bucket may have permits that must not be leased, and callers that share one get none.
        let may_lease = block.permits > 0 || reply.remaining < lessor.unit_cost;
        let is_short = may_lease && block.permits + lessor.unit_cost <= in_time;
        let pause = if is_short { lessor.pause(ahead, reply.spend) } else { Pause::default() };
        if permits > 0 {
            self.on_reply(pause, sent);
        }
        before
    }

    /// Merges the previous block into the new one, if possible. Otherwise returns it.
    fn keep(&mut self, (former, left): (Block, u64)) -> (Block, u64) {
        if !self.block.is_charged_as(former) {
            return (former, left);
        }
        self.block.permits += former.permits;
        self.left += left;
        Default::default()
    }

    /// The authority refuses a request, or has no block for one.
    pub fn on_refusal(&mut self, received: Received<'_>, retry: Retry, lessor: Lessor) {
        let Received { reply, cost, asked: Wanted { permits, ahead }, sent, now, .. } = received;
        self.remaining_at_authority = reply.remaining;
        let refused = reply.refused(retry, reply.remaining);
        self.refuse(cost, refused, lessor.is_final, (sent, now));
        let rest = if let Retry::After(ticks) = retry { ticks } else { 0 };
        let is_early = !reply.overflow && (reply.is_outstanding || rest < ahead);
        let pause = if is_early { lessor.pause(ahead, rest) } else { Pause::default() };
        if permits > 0 {
            self.on_reply(pause, sent);
        }
    }

    /// The authority has replied to a question that was sent at `sent`. After a pause it is asked
    /// again in advance, unless its window is another one then.
    fn on_reply(&mut self, pause: Pause, sent: Now) {
        let until = sent.mono.saturating_add(pause.ticks);
        self.asking_until = 0;
        self.pause = if pause.ticks > 0 && !pause.ends_with_window { until } else { 0 };
        if pause.ends_with_window && self.refusal.until < until {
            let (reason, retry, since) = (Reason::Outstanding, SECOND, sent.mono);
            self.refusal = CachedRefusal { cost: 0, reason, retry, remaining: 0, since, until };
        }
    }

    /// Remembers a refusal of `cost` permits by the authority, which decided at `sent` or later.
    /// The refusal arrived at `now`. One that is not final is remembered only briefly, since a
    /// charge that is cancelled at once may have caused it.
    pub(crate) fn refuse(
        &mut self,
        cost: u64,
        refused: Refused,
        is_final: bool,
        (sent, now): (Now, Now),
    ) {
        self.refused_at = now.mono;
        let Retry::After(retry) = refused.retry else { return };
        let is_final = is_final && refused.reason != Reason::Outstanding;
        let longest = if is_final { FINAL } else { PROVISIONAL };
        let until = sent.mono.saturating_add(retry.min(longest));
        let (reason, remaining) = (refused.reason, refused.remaining.unwrap_or(0));
        self.refusal = CachedRefusal { cost, reason, retry, remaining, since: now.mono, until };
    }

    /// Remembers the refusal of `cost` permits by the gateway's lease until an instant.
    pub fn remember(&mut self, cost: u64, refused: Refused, now: Now, until: Micros) {
        let Retry::After(retry) = refused.retry else { return };
        let (reason, remaining) = (refused.reason, refused.remaining.unwrap_or(0));
        self.refusal = CachedRefusal { cost, reason, retry, remaining, since: now.mono, until };
    }

    /// Until when a worker may remember a refusal of `cost` permits: then such a request may be decided
    /// otherwise, or the next block is due.
    #[must_use]
    pub fn refuses_until(&self, cost: u64, now: Now, pace: Pace) -> Micros {
        let cached = self.refusal.at(cost, now);
        let soon = now.mono.saturating_add(pace.notice / 2);
        let refused = if cached.is_some() {
            self.refusal.until.saturating_sub(pace.notice / 4)
        } else {
            soon
        };
        let until = match self.pause {
            0 => refused,
            pause => pause.max(self.refusal.until).saturating_sub(pace.notice).max(soon),
        };
        match cached {
            Some(Refused { reason: Reason::Used, .. }) => until,
            _ => until.min(now.mono.saturating_add(PROVISIONAL)),
        }
    }

    /// Forgets the latest refusal.
    pub fn forget_refusal(&mut self) {
        self.refusal.clear();
    }

    /// Returns true if the block must be returned.
    pub(crate) fn has_ended(&self, now: Now) -> bool {
        // During a pause, a spent block is returned with the next question.
        let is_spent = self.left == 0 && self.pause == 0;
        self.has_block() && (is_spent || !self.has(0, now))
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
}
