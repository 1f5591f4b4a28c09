//! Decisions of a gateway about one caller of Redis, compared with a record of all replies.

use std::rc::Rc;

use diana_policy::decision::Retry;
use diana_policy::time::{Micros, Now, SECOND, Unit};
use diana_policy::{MAX_DRAINED, Quota};
use diana_redis::protocol::RuleReply;
use diana_store::gateway_leases::{GatewayLease, GatewayLeases};
use diana_store::lease::{Block, Lease, LeaseDecision, Lessor, Pace, Received, Wanted};
use diana_store::refusal::Reason;
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;

use crate::support::gateway::MS;
use crate::support::redis_rule::{lends, refuses};

/// The longest life of a lease, and the shortest time of demand that it covers.
const LONGEST: Micros = 400 * MS;
const AHEAD: Micros = 20 * MS;

/// How long a busy caller is refused after a refusal, while a call to Redis is pending or due.
const RECENT: Micros = 100 * MS;

/// How long a question may be pending.
const PATIENCE: Micros = 40 * MS;

/// The shortest span in which demand is counted, and the longest.
const SPAN: Micros = SECOND / 10;
const SPANS: Micros = 2 * SECOND;

/// The requests that end a span, and those that make a caller busy.
const KNOWN: u64 = 20;
const MANY: u64 = 8;

/// The requests that a block is for.
const REQUESTS: u64 = 10;

/// All spans with requests: the start of each, and the number of requests.
#[derive(Default)]
struct Demand(Vec<(Micros, u64)>);

impl Demand {
    fn see(&mut self, at: Micros) {
        match self.0.last_mut() {
            Some((begins, seen)) => match at - *begins {
                age if age >= 2 * SPANS => self.0 = vec![(at, 1)],
                age if age >= SPANS || age >= SPAN && *seen >= KNOWN => self.0.push((at, 1)),
                _ => *seen += 1,
            },
            None => self.0.push((at, 1)),
        }
    }

    /// Requests in the last two spans, and the length of these.
    fn lately(&self, at: Micros) -> (u64, Micros) {
        let last = self.0.len().saturating_sub(2)..;
        let begins = self.0.get(last.clone()).and_then(|last| last.first());
        let requests = self.0[last].iter().map(|(_, requests)| requests).sum();
        (requests, begins.map_or(at, |(begins, _)| at - begins).max(SPAN / 8))
    }
}

/// Leased permits.
#[derive(Clone, Copy, Default)]
struct Held {
    receipt: u64,
    permits: u64,
    left: u64,
    ends: Now,
    ends_with_window: bool,
}

impl Held {
    fn has(&self, permits: u64, now: Now) -> bool {
        self.left >= permits && now.mono < self.ends.mono && now.wall < self.ends.wall
    }

    /// Removes its permits, for return.
    fn take(&mut self) -> Option<(Block, u64)> {
        let (permits, left) = (std::mem::take(&mut self.permits), std::mem::take(&mut self.left));
        let receipt = self.receipt;
        (permits > 0).then_some((Block { permits, term: receipt + 1, receipt }, left))
    }
}

/// A refusal: the permits, its arrival, the end of the memory of it, and when the request fits.
#[derive(Clone, Copy, Default)]
struct Refusal {
    cost: u64,
    since: Micros,
    until: Micros,
    fits: Micros,
}

/// A gateway with one caller.
struct Caller {
    leases: GatewayLeases,
    pace: Pace,
    lessor: Lessor,
    rule: Rule,
    now: Now,
    rng: Rng,
    receipts: u64,
    demand: Demand,
    hand: Held,
    /// The block before it, which the next question returns.
    former: Held,
    /// The permits of the pending question for a block, and the time in which they are spent.
    asking: Option<(u64, Micros)>,
    /// Until when it keeps others from asking.
    asks_until: Micros,
    refused: Refusal,
    /// Until when Redis is not asked since it has too few permits, if it had at last.
    pause: Option<Micros>,
    refused_at: Option<Micros>,
    /// How long before the end of a block the next one is requested.
    notice: Micros,
    /// Blocks to return, and those that were.
    back: Vec<(Block, u64)>,
    returned: Vec<(Block, u64)>,
    /// Requests by lease, refused by memory, refused by a busy caller's, sent to Redis; renewals; pauses.
    seen: [u64; 6],
}

impl Caller {
    fn new(mut rng: Rng) -> Caller {
        let quota = Quota { cost: rng.u64(1..9), ..Quota::new(Unit::Second, MAX_DRAINED) };
        let short = ["W", "SW", "TB"][rng.usize(..3)];
        let rule = Rule { is_even: rng.bool(), ..Rule::new(short, quota) };
        let trip = rng.u64(0..8 * MS);
        let longest_pause = (short == "TB").then_some(LONGEST);
        let unit_cost = rule.spec(1).unit_cost;
        Caller {
            leases: GatewayLeases::new("test", 7, Rc::new(FakeSharedData::default())),
            pace: Pace::of_fleet(
                trip,
                PATIENCE,
                if short == "SW" { SECOND / 10 } else { SECOND },
                MAX_DRAINED,
            ),
            lessor: Lessor { unit_cost, longest_pause, is_final: true },
            rule,
            now: START,
            rng,
            receipts: 0,
            demand: Demand::default(),
            hand: Held::default(),
            former: Held::default(),
            asking: None,
            asks_until: 0,
            refused: Refusal::default(),
            pause: None,
            refused_at: None,
            notice: trip * 2,
            back: Vec::new(),
            returned: Vec::new(),
            seen: [0; 6],
        }
    }

    fn change_both<T>(&mut self, change: impl FnMut(&mut GatewayLease) -> T) -> T {
        self.leases.change(key(1).into(), self.now.mono, change).unwrap()
    }

    fn change<T>(&mut self, mut change: impl FnMut(&mut Lease) -> T) -> T {
        self.change_both(|known| change(&mut known.lease))
    }

    fn is_asking(&self) -> bool {
        self.asking.is_some() && self.now.mono < self.asks_until
    }

    fn asks(&mut self, wanted: Option<(u64, Micros)>) {
        if wanted.is_some() {
            (self.asking, self.asks_until) = (wanted, self.now.mono + PATIENCE);
        }
    }

    /// The longest time of demand that a lease covers: at most what Redis counts together.
    fn longest(&self) -> Micros {
        if self.rule.entry.short == "SW" { SECOND / 10 } else { LONGEST }
    }

    /// The block to ask for, if the caller is busy: its permits, and the time in which they are spent.
    fn wants(&self, cost: u64) -> Option<(u64, Micros)> {
        let (seen, lasted) = self.demand.lately(self.now.mono);
        let ahead = (REQUESTS * lasted / seen).clamp(AHEAD, self.longest());
        let is_busy = seen >= MANY && 4 * lasted / seen <= self.longest();
        // A window of a second has two requests to spare.
        let spare = if ahead == LONGEST { 2 } else { 0 };
        is_busy.then(|| ((seen * ahead / lasted + spare).max(1) * cost, ahead))
    }

    fn give_back(&mut self) {
        self.back.extend(self.former.take());
        self.back.extend(self.hand.take());
        self.hand = Held::default();
    }

    /// Advances the clock, often to a change or a tick before or after it.
    fn pass(&mut self) {
        let Refusal { since, until, fits, .. } = self.refused;
        let pause = self.pause.unwrap_or_default();
        let turns = [
            self.hand.ends.mono,
            since + RECENT,
            until,
            fits,
            pause,
            pause.saturating_sub(self.notice),
        ];
        let turn = self.rng.choice(turns).unwrap();
        let until = (turn + self.rng.u64(0..3)).saturating_sub(self.now.mono + 1);
        let ticks = match self.rng.u8(0..24) {
            0..2 if until < SECOND => until,
            2 => self.rng.u64(0..SPAN),
            _ => self.rng.u64(0..2 * MS),
        };
        self.now = self.now.later(ticks);
        if self.rng.u8(0..100) == 0 {
            self.now.wall += self.rng.u64(0..LONGEST);
        }
    }

    fn request(&mut self) {
        let (now, cost, pace) = (self.now, self.rule.cost(&mut self.rng), self.pace);
        self.demand.see(now.mono);
        let decision = self.change(|lease| {
            lease.count(1, now, pace);
            lease.judge(cost, now, pace)
        });
        if self.hand.has(cost, now) {
            self.seen[0] += 1;
            assert_eq!(decision, LeaseDecision::Leased);
            // A worker gets a part, and may return it.
            let (none, unit_cost) = (Lease::default(), self.lessor.unit_cost);
            let unspent = if self.rng.u8(0..8) == 0 { cost } else { 0 };
            let part = self.change(|lease| {
                let part = lease.give(&none, cost, unit_cost, now, pace);
                assert!(lease.merge(part, unspent));
                part
            });
            assert_eq!(part.permits, cost);
            self.hand.left -= cost - unspent;
            self.done_with_next();
            return;
        }
        let Refusal { cost: least, since, until, fits } = self.refused;
        if now.mono < until && cost >= least {
            self.seen[1] += 1;
            let LeaseDecision::Refused(refused) = decision else { panic!("{decision:?}") };
            let retry = fits.saturating_sub(now.mono).max(1);
            assert_eq!(refused.retry, Retry::After(retry));
            return self.refused();
        }
        let is_recent = |at: Micros| at > 0 && now.mono - at < RECENT;
        let was_refused = self.is_asking() && is_recent(since);
        let is_paused = |pause| now.mono < pause || self.refused_at.is_some_and(is_recent);
        if self.wants(1).is_some() && (was_refused || self.pause.is_some_and(is_paused)) {
            self.seen[2] += 1;
            let LeaseDecision::Refused(refused) = decision else { panic!("{decision:?}") };
            assert_eq!(refused.reason, Reason::Outstanding);
            return self.refused();
        }
        self.seen[3] += 1;
        assert_eq!(decision, LeaseDecision::Undecided);
        self.give_back();
        let asks = self.rng.bool();
        let (blocks, found) = self.change_both(|known| {
            let blocks = known.take_blocks();
            (blocks, if asks { known.lease.ask(cost, now, pace) } else { Wanted::default() })
        });
        self.returned.extend(blocks);
        let wanted = if !asks || self.is_asking() { None } else { self.wants(cost) };
        assert_eq!(found.permits, wanted.map_or(0, |(permits, _)| permits));
        self.asks(wanted);
        self.done();
    }

    /// A request is refused here. A block that has ended is returned.
    fn refused(&mut self) {
        self.refused_at = Some(self.now.mono);
        self.done_with_next();
        self.end();
    }

    fn end(&mut self) {
        if self.has_ended() {
            self.give_back();
        }
        let (now, pace) = (self.now, self.pace);
        let ended = self.change_both(|known| {
            if known.has_ended(now, pace) { known.take_blocks() } else { Default::default() }
        });
        self.returned.extend(ended);
        self.done();
    }

    fn has_ended(&self) -> bool {
        let is_over = !self.hand.has(0, self.now);
        let is_spent = self.hand.left == 0 && self.pause.is_none();
        let returns_spent = self.hand.permits > 0 && (is_spent || is_over) && self.has_next();
        self.hand.left + self.former.left > 0 && is_over || returns_spent
    }

    /// Whether another request is likely before the reply to a question.
    fn has_next(&self) -> bool {
        let (seen, lasted) = self.demand.lately(self.now.mono);
        16 * seen * self.notice / lasted > 0
    }

    /// Requests the next block if that is due.
    fn due(&mut self) -> Option<(u64, Micros)> {
        let Held { left, ends, ends_with_window, .. } = self.hand;
        let (now, unit_cost) = (self.now.mono, self.rule.spec(1).unit_cost);
        let soon = now + self.notice;
        let renews = now < self.refused.until && self.refused.until <= now + self.notice / 4;
        let may_ask = match self.pause {
            Some(pause) => pause <= soon && self.refused.until <= soon,
            None if now < self.refused.until => renews,
            None => ends.mono > 0,
        };
        let (seen, lasted) = self.demand.lately(now);
        let rest = ends.mono.saturating_sub(now);
        let notice = if ends_with_window { self.notice.min(rest) } else { self.notice };
        let expected = seen * notice / lasted * unit_cost;
        let runs_low = left <= expected + expected.min(2 * unit_cost) + unit_cost;
        let ahead = if ends_with_window { self.notice / 4 } else { self.notice };
        let is_due = may_ask && (renews || runs_low || ends.mono < now + ahead);
        let wanted = self.wants(unit_cost).filter(|_| is_due && !self.is_asking());
        if wanted.is_some() {
            let kept = if self.has_next() { self.hand.left } else { 0 };
            self.back.extend(self.former.take());
            (self.hand.permits, self.hand.left) = (self.hand.permits - kept, self.hand.left - kept);
            self.back.extend(self.hand.take());
            (self.hand.permits, self.hand.left) = (kept, kept);
        }
        self.asks(wanted);
        self.seen[4] += u64::from(wanted.is_some());
        wanted
    }

    /// All blocks are returned that must be.
    fn done(&mut self) {
        for block in self.returned.drain(..).filter(|(block, _)| block.permits > 0) {
            let place = self.back.iter().position(|known| *known == block);
            let place = place.unwrap_or_else(|| panic!("{block:?} at {:?}", self.now));
            self.back.swap_remove(place);
        }
        assert_eq!(self.back, [], "at {:?}", self.now);
    }

    /// Asks for the next block if that is due.
    fn done_with_next(&mut self) {
        let (now, pace, unit_cost) = (self.now, self.pace, self.lessor.unit_cost);
        let asked = self.change_both(|known| {
            let is_due = known.lease.is_due(0, unit_cost, now, pace);
            let wanted = known.lease.wanted(unit_cost, now, pace);
            (is_due && wanted.permits > 0).then(|| {
                let wanted = known.lease.ask(unit_cost, now, pace);
                (wanted, known.take_before_next(now, pace))
            })
        });
        self.returned.extend(asked.iter().flat_map(|(_, blocks)| *blocks));
        let due = self.due();
        assert_eq!(asked.map(|(wanted, _)| (wanted.permits, wanted.ahead)), due, "at {now:?}");
        self.done();
    }

    /// The reply to the pending question for a block, or to one without a block.
    fn answer(&mut self) {
        let now = self.now;
        let ago = self.rng.u64(0..5 * MS);
        let sent = Now { mono: now.mono - ago, wall: now.wall - ago };
        let at = sent.mono + self.rng.u64(0..=ago);
        let asked = self.asking.filter(|_| self.rng.u8(0..8) > 0);
        let reply = if self.rng.u8(0..3) == 0 {
            self.refuse(asked, sent)
        } else {
            self.lend(asked, sent, at)
        };
        if asked.is_some() {
            self.asking = None;
        }
        let (reply, cost) = (&reply, self.rule.quota.cost);
        let (permits, ahead) = asked.unwrap_or_default();
        let (charged, asked) = (0, Wanted { permits, ahead });
        let received = Received { reply, cost, charged, asked, sent, at, now };
        let lessor = self.lessor;
        let former = self.change_both(|known| match reply.retry {
            Some(retry) => {
                known.lease.on_refusal(received, retry, lessor);
                None
            }
            None => {
                let before = known.lease.on_admission(received, lessor);
                known.follow(before)
            }
        });
        self.returned.extend(former);
        self.done();
    }

    fn refuse(&mut self, asked: Option<(u64, Micros)>, sent: Now) -> RuleReply {
        let (now, cost) = (self.now.mono, self.rule.quota.cost);
        let retry = self.rng.u64(1..2 * SECOND) >> self.rng.u8(0..12);
        let is_outstanding = self.rng.bool();
        let longest = if is_outstanding { 20 * MS } else { SECOND };
        let until = sent.mono + retry.min(longest);
        self.refused = Refusal { cost, since: now, until, fits: now + retry };
        self.refused_at = Some(now);
        if let Some((_, ahead)) = asked {
            self.pause = None;
            if is_outstanding || retry < ahead {
                self.begin_pause(ahead, retry, sent.mono);
            }
        }
        refuses(retry, is_outstanding)
    }

    fn lend(&mut self, asked: Option<(u64, Micros)>, sent: Now, at: Micros) -> RuleReply {
        self.receipts += 2;
        let (lease, term, spend) = (self.receipts, self.receipts + 1, self.rng.u64(1..=LONGEST));
        let permits = asked.map_or(0, |_| self.rng.u64(0..20));
        if let Some((wanted, ahead)) = asked {
            if permits > 0 {
                if self.hand.permits > 0 {
                    self.back.extend(self.former.take());
                    self.former = self.hand;
                }
                let life = at - sent.mono + (ahead * 3 / 2).min(LONGEST);
                let ticks = if spend < LONGEST { life.min(spend) } else { life };
                let ends_with_window = spend < LONGEST && life >= spend;
                let ends = sent.later(ticks);
                self.hand = Held { receipt: lease, permits, left: permits, ends, ends_with_window };
                // The refusal is forgotten, but is still recent.
                self.refused.until = 0;
            }
            self.pause = None;
            let in_time = wanted * spend.min(ahead) / ahead;
            if permits > 0 && permits + self.rule.spec(1).unit_cost <= in_time {
                self.begin_pause(ahead, spend, sent.mono);
            }
        }
        RuleReply { lease, term, spend, ..lends(permits) }
    }

    /// For the time of a block, Redis has too few permits; its window ends after `rest` ticks.
    fn begin_pause(&mut self, ahead: Micros, rest: Micros, sent: Micros) {
        self.seen[5] += 1;
        if self.rule.entry.short == "TB" || rest > ahead {
            self.pause = Some(sent + ahead);
        } else if self.refused.until < sent + rest {
            let (until, fits) = (sent + rest, sent + SECOND);
            self.refused = Refusal { cost: 0, since: sent, until, fits };
        }
    }

    fn step(&mut self) {
        self.pass();
        match self.rng.u8(0..24) {
            0..2 => self.answer(),
            2 => self.end(),
            3 => {
                self.change(Lease::on_no_reply);
                self.asking = None;
            }
            _ => self.request(),
        }
    }
}

/// Each block is spent in its time, renewed before it is spent, and its rest is returned once. A
/// refusal is remembered for its time.
#[test]
fn gateway_agrees_with_a_record_of_replies() {
    let mut rng = Rng::with_seed(kit::seed::next());
    let mut seen = [0; 6];
    for _ in 0..600 {
        let mut caller = Caller::new(rng.fork());
        (0..500).for_each(|_| caller.step());
        caller.give_back();
        let blocks = caller.change_both(GatewayLease::take_blocks);
        caller.returned.extend(blocks);
        caller.done();
        seen.iter_mut().zip(caller.seen).for_each(|(sum, of)| *sum += of);
    }
    assert!(seen.iter().all(|number| *number > 500), "{seen:?}");
}
