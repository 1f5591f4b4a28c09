//! A worker's knowledge of one caller: permits leased from the authority (the gateway's shared
//! data, or Redis), and its latest refusal. Forgetting it costs only one more request to the
//! authority.
//!
//! A lease is small and short: the caller's expected demand in a time that its [`Pace`] bounds.
//! Unspent permits then return to the authority.

use crate::refusal::{Reason, Refused};
use crate::replies::RuleReply;
use diana_policy::decision::Retry;
use diana_policy::key::Key;
use diana_policy::time::{Micros, Now, SECOND};

/// The longest life of a lease: shorter than the term in which Redis counts it as outstanding.
const LONGEST: Micros = SECOND * 2 / 5;

/// How long a block counts as outstanding at least, from before the call: the length of a term.
const COUNTED: Micros = SECOND / 2;

/// The shortest time of demand that a lease covers.
const AHEAD: Micros = SECOND / 50;

/// A lease covers the demand of the time in which about this number of requests come.
const REQUESTS: u64 = 8;

/// The least requests of a busy caller within a certain time.
const LEAST: u64 = 4;

/// How the leases of an authority follow demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The longest span in which demand is counted.
    pub span: Micros,
    /// The shortest and the longest time of demand that a lease covers.
    pub ahead: (Micros, Micros),
    /// A caller is busy if `LEAST` requests come within this time.
    pub busy: Micros,
    /// How long before the end of a lease the next one is requested.
    pub notice: Micros,
}

impl Pace {
    /// Of shared data, which replies at once.
    pub const GATEWAY: Pace =
        Pace { span: SECOND / 10, ahead: (AHEAD, AHEAD), busy: Micros::MAX, notice: 0 };

    /// Of an authority whose replies take about `trip`, for a rule with permits that end
    /// within `window`. A question may wait for the reply to an earlier one.
    #[must_use]
    pub fn of_fleet(trip: Micros, window: Micros) -> Pace {
        let notice = trip.saturating_mul(2).min(LONGEST);
        let least = notice.max(AHEAD);
        let longest = LONGEST.min(window).max(least);
        Pace { span: 2 * SECOND, ahead: (least, longest), busy: longest, notice }
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
    /// Until then the authority is not asked again, since it has too few permits for all workers;
    /// zero if its latest reply leased the whole block.
    pause: Micros,
    /// When a request was last refused here.
    refused_at: Micros,
    /// Remaining permits at the authority, by its latest reply.
    remaining_at_authority: u64,
    /// Whether a request that may lease a block is pending.
    is_asking: bool,
    /// Whether the block ends with its window.
    ends_with_window: bool,
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
        (self.ahead * 5 / 2).min(LONGEST)
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

    pub(crate) fn key(&self) -> Key {
        self.key
    }

    /// Decides a request of `cost` permits, and counts it as demand.
    pub(crate) fn decide(&mut self, cost: u64, now: Now, pace: Pace) -> LeaseDecision {
        self.demand.count(now, pace);
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
        let was_refused = self.is_asking && is_recent(self.refusal.since);
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
        if self.is_asking {
            return Wanted::default();
        }
        let wanted = self.wanted(cost, now, pace);
        self.is_asking = wanted.permits > 0;
        wanted
    }

    /// The question for a block has no reply.
    pub fn on_no_reply(&mut self) {
        self.is_asking = false;
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
    pub(crate) fn has(&self, cost: u64, now: Now) -> bool {
        self.left >= cost && now.mono < self.ends.mono && now.wall < self.ends.wall
    }

    /// Returns true if it is time to request the next block, so that no request waits for it:
    /// before this one is spent or ends, or before the authority may be asked again.
    pub fn is_due(&self, cost: u64, now: Now, pace: Pace) -> bool {
        let soon = now.mono.saturating_add(pace.notice);
        let may_ask = match self.pause {
            0 => self.has_block(),
            pause => pause.max(self.refusal.until) <= soon,
        };
        let runs_low = || {
            let rest = self.ends.mono.saturating_sub(now.mono);
            let notice = if self.ends_with_window { pace.notice.min(rest) } else { pace.notice };
            let expected = self.demand.within(notice, cost, now);
            self.left <= expected.saturating_add(expected.min(2 * cost)).saturating_add(cost)
        };
        // A question that comes before the end of the window gets another block that ends with it.
        let ahead = if self.ends_with_window { pace.notice / 4 } else { pace.notice };
        let ends_soon = || self.ends.mono < now.mono.saturating_add(ahead);
        !self.is_asking && may_ask && (runs_low() || ends_soon())
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
    pub(crate) fn change_plan(&mut self, plan: u64) {
        *self =
            Lease { demand: self.demand, is_listed: self.is_listed, ..Lease::of(self.key, plan) };
    }

    /// Removes the block.
    pub(crate) fn take_block(&mut self) -> (Block, u64) {
        (std::mem::take(&mut self.block), std::mem::take(&mut self.left))
    }

    /// The authority admits a request, or only leases a block. Returns the block that another one
    /// follows.
    pub(crate) fn on_admission(&mut self, received: Received<'_>, lessor: Lessor) -> (Block, u64) {
        let Received { reply, asked: Wanted { permits, ahead }, sent, .. } = received;
        let block = reply.leased();
        self.remaining_at_authority = reply.remaining;
        let before = match block.permits {
            0 => Default::default(),
            _ => self.renew(block, Life::of(received), sent),
        };
        self.remaining_at_authority = self.remaining_at_authority.saturating_add(before.1);
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

    /// The authority refuses a request, or has no block for one.
    pub(crate) fn on_refusal(&mut self, received: Received<'_>, retry: Retry, lessor: Lessor) {
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
        self.is_asking = false;
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

/// The demand of a caller: requests in the current span and in the previous one.
#[derive(Debug, Clone, Copy, Default)]
struct Demand {
    /// The start of the current span.
    since: Micros,
    /// The length of the previous one; zero if there was none.
    before: Micros,
    current: u32,
    previous: u32,
}

impl Demand {
    /// The shortest span.
    const SPAN: Micros = SECOND / 10;

    /// Requests in one to two spans from which on a caller may be busy. Below that, each request is
    /// sent to the authority, so that no worker leases permits that the caller needs in another
    /// one.
    const BUSY: u32 = 20;

    /// The shortest time over which demand is measured.
    const SHORTEST: Micros = SECOND / 80;

    /// The maximum expected demand, in permits.
    const MOST: u64 = 1 << 16;

    /// Counts a request. A span lasts until the requests of a busy caller have come, as far as it
    /// may.
    fn count(&mut self, now: Now, pace: Pace) {
        let age = now.mono.saturating_sub(self.since);
        if age >= 2 * pace.span {
            *self = Demand { since: now.mono, ..Demand::default() };
        } else if age >= pace.span || age >= Demand::SPAN && self.current >= Demand::BUSY {
            (self.since, self.before) = (now.mono, age);
            (self.previous, self.current) = (self.current, 0);
        }
        self.current += 1;
    }

    fn is_busy(&self, now: Now, pace: Pace) -> bool {
        let requests = self.previous + self.current;
        requests >= Demand::BUSY && self.time_of(LEAST, now) <= pace.busy
    }

    /// Ticks in which `requests` come.
    fn time_of(&self, requests: u64, now: Now) -> Micros {
        requests * self.elapsed(now) / u64::from(self.previous + self.current).max(1)
    }

    fn elapsed(&self, now: Now) -> Micros {
        (self.before + now.mono.saturating_sub(self.since)).max(Demand::SHORTEST)
    }

    /// Permits that are taken within this time, if each request takes `cost`.
    fn within(&self, ticks: Micros, cost: u64, now: Now) -> u64 {
        let requests = u64::from(self.previous + self.current) * ticks / self.elapsed(now);
        requests.saturating_mul(cost).min(Demand::MOST.max(cost))
    }

    /// The next block, if each request takes `cost`.
    fn expected(&self, cost: u64, now: Now, pace: Pace) -> Wanted {
        let (least, most) = pace.ahead;
        let ahead = self.time_of(REQUESTS, now).clamp(least, most);
        let permits =
            if self.is_busy(now, pace) { self.within(ahead, cost, now).max(cost) } else { 0 };
        Wanted { permits, ahead }
    }
}
