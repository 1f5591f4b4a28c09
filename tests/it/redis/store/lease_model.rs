//! Decisions of a worker about one caller of Redis, compared with a record of all replies.

use std::cell::RefCell;
use std::rc::Rc;

use diana_policy::decision::Decision;
use diana_policy::time::{Micros, Now, SECOND, Unit};
use diana_policy::{MAX_DRAINED, Quota};
use diana_redis::outbox::{Operation, Outbox};
use diana_redis::protocol::{Effect, Question, RuleReply};
use diana_redis::store::RedisStore;
use diana_store::Store;
use diana_store::lease::{Received, Wanted};
use diana_store::replies::QuestionResult;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::{Decided, Take, answer, together};

use crate::support::gateway::MS;
use crate::support::redis_rule::{lends, refuses};

/// The longest life of a lease, and the shortest time of demand that it covers.
const LONGEST: Micros = 400 * MS;
const AHEAD: Micros = 20 * MS;

/// How long a busy caller is refused after a refusal, while a call to Redis is pending or due.
const RECENT: Micros = 100 * MS;

/// The shortest span in which demand is counted, and the longest.
const SPAN: Micros = SECOND / 10;
const SPANS: Micros = 2 * SECOND;

/// The requests that end a span, and make a caller busy.
const MANY: u64 = 20;

/// All spans with requests: the start of each, and the number of requests.
#[derive(Default)]
struct Demand(Vec<(Micros, u64)>);

impl Demand {
    fn see(&mut self, at: Micros) {
        match self.0.last_mut() {
            Some((begins, seen)) => match at - *begins {
                age if age >= 2 * SPANS => self.0 = vec![(at, 1)],
                age if age >= SPANS || age >= SPAN && *seen >= MANY => self.0.push((at, 1)),
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
}

/// A refusal: the permits, its arrival, the end of the memory of it, and when the request fits.
#[derive(Clone, Copy, Default)]
struct Refusal {
    cost: u64,
    since: Micros,
    until: Micros,
    fits: Micros,
}

/// A worker with one caller.
struct RedisRule {
    store: RedisStore,
    outbox: Rc<RefCell<Outbox>>,
    rule: Rule,
    now: Now,
    rng: Rng,
    receipts: u64,
    demand: Demand,
    hand: Held,
    /// The permits of the pending question for a block, and the time in which they are spent.
    asking: Option<(u64, Micros)>,
    refused: Refusal,
    /// Until when Redis is not asked since it has too few permits, if it had at last.
    pause: Option<Micros>,
    refused_at: Option<Micros>,
    /// How long before the end of a block the next one is requested.
    notice: Micros,
    /// Blocks to return.
    back: Vec<Effect>,
    /// Requests by lease, refused by memory, refused by a busy caller's, sent to Redis; renewals; pauses.
    seen: [u64; 6],
}

impl RedisRule {
    fn new(mut rng: Rng) -> RedisRule {
        let quota = Quota { cost: rng.u64(1..9), ..Quota::new(Unit::Second, MAX_DRAINED) };
        let data = Rc::new(FakeSharedData::default());
        let mut tables = Tables::default();
        let mut stores = Stores::new("test".into(), data, &mut tables);
        let short = ["W", "SW", "TB"][rng.usize(..3)];
        let rule = Rule { is_even: rng.bool(), ..Rule::new(short, quota) };
        let outbox = together();
        let trip = rng.u64(0..8 * MS);
        outbox.borrow_mut().trip = trip;
        let opened = RedisStore::new(rule.spec(100), 3, outbox.clone(), &mut stores);
        let mut store = opened.unwrap();
        // A caller is unknown before its first question.
        store.question((key(1), 1), START, false, false);
        RedisRule {
            store,
            outbox,
            rule,
            now: START,
            rng,
            receipts: 0,
            demand: Demand::default(),
            hand: Held::default(),
            asking: None,
            refused: Refusal::default(),
            pause: None,
            refused_at: None,
            notice: trip * 2,
            back: Vec::new(),
            seen: [0; 6],
        }
    }

    /// The longest time of demand that a lease covers: at most what Redis counts together.
    fn longest(&self) -> Micros {
        if self.rule.entry.short == "SW" { SECOND / 10 } else { LONGEST }
    }

    /// The block to ask for, if the caller is busy: its permits, and the time in which they are spent.
    fn wants(&self, cost: u64) -> Option<(u64, Micros)> {
        let (seen, lasted) = self.demand.lately(self.now.mono);
        let ahead = (8 * lasted / seen).clamp(AHEAD, self.longest());
        let is_busy = seen >= MANY && 4 * lasted / seen <= self.longest();
        is_busy.then(|| ((seen * ahead / lasted).max(1) * cost, ahead))
    }

    fn give_back(&mut self) {
        let Held { receipt, permits, left, .. } = std::mem::take(&mut self.hand);
        if permits > 0 {
            self.back.push(Effect::ReturnBlock {
                receipt,
                term: receipt + 1,
                block: permits,
                left,
            });
        }
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
        let (now, cost) = (self.now, self.rule.cost(&mut self.rng));
        self.demand.see(now.mono);
        let mut found = self.store.checked(key(1).into(), cost, now);
        if self.hand.has(cost, now) {
            self.seen[0] += 1;
            assert!(self.store.charged(&mut found, 0).is_admitted());
            self.hand.left -= cost;
            let wanted = self.due();
            self.done(wanted);
            if self.rng.u8(0..8) == 0 {
                self.store.cancel(&mut found);
                if self.hand.permits > 0 {
                    self.hand.left += cost;
                }
            }
            return;
        }
        let Refusal { cost: least, since, until, fits } = self.refused;
        if now.mono < until && cost >= least {
            self.seen[1] += 1;
            let retry = fits.saturating_sub(now.mono).max(1);
            assert_eq!(found.decision(), Decision::retry(retry));
            return self.refused();
        }
        let is_recent = |at: Micros| at > 0 && now.mono - at < RECENT;
        let was_refused = self.asking.is_some() && is_recent(since);
        let is_paused = |pause| now.mono < pause || self.refused_at.is_some_and(is_recent);
        if self.wants(1).is_some() && (was_refused || self.pause.is_some_and(is_paused)) {
            self.seen[2] += 1;
            assert!(found.is_outstanding() && !found.decision().is_admitted());
            return self.refused();
        }
        self.seen[3] += 1;
        assert!(found.is_pending());
        self.give_back();
        self.done(None);
        if self.rng.bool() {
            let charge = self.store.question((key(1), cost), now, false, false);
            let wanted = if self.asking.is_some() { None } else { self.wants(cost) };
            assert_eq!(charge.want, wanted.map_or(0, |(permits, _)| permits));
            self.asking = self.asking.or(wanted);
        }
    }

    /// A request is refused here. A block that has ended is returned.
    fn refused(&mut self) {
        self.refused_at = Some(self.now.mono);
        let wanted = self.due();
        if self.has_ended() {
            self.give_back();
        }
        self.done(wanted);
    }

    fn has_ended(&self) -> bool {
        self.hand.left == 0 && self.pause.is_none() || !self.hand.has(0, self.now)
    }

    /// Requests the next block if that is due.
    fn due(&mut self) -> Option<(u64, Micros)> {
        let Held { permits, left, ends, ends_with_window, .. } = self.hand;
        let unit_cost = self.rule.spec(1).unit_cost;
        let soon = self.now.mono + self.notice;
        let may_ask = match self.pause {
            Some(pause) => pause <= soon && self.refused.until <= soon,
            None => permits > 0,
        };
        let (seen, lasted) = self.demand.lately(self.now.mono);
        let rest = ends.mono.saturating_sub(self.now.mono);
        let notice = if ends_with_window { self.notice.min(rest) } else { self.notice };
        let expected = seen * notice / lasted * unit_cost;
        let runs_low = left <= expected + expected.min(2 * unit_cost) + unit_cost;
        let ahead = if ends_with_window { self.notice / 4 } else { self.notice };
        let is_due = may_ask && (runs_low || ends.mono < self.now.mono + ahead);
        let wanted = self.wants(unit_cost).filter(|_| is_due && self.asking.is_none());
        if wanted.is_some() && left == 0 {
            self.give_back();
        }
        self.asking = self.asking.or(wanted);
        self.seen[4] += u64::from(wanted.is_some());
        wanted
    }

    /// Handles operations of Redis: returns of blocks, and the renewal with this block.
    fn done(&mut self, renewed: Option<(u64, Micros)>) {
        let mut asked = None;
        for operation in self.outbox.borrow_mut().take(usize::MAX) {
            match operation {
                Operation::Return(charge) => {
                    let place = self.back.iter().position(|effect| *effect == charge.effect);
                    let place = place.unwrap_or_else(|| panic!("{charge:?} at {:?}", self.now));
                    self.back.swap_remove(place);
                }
                Operation::Renew(3, _, charge) if asked.is_none() => {
                    asked = Some((charge.want, charge.ahead));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(self.back, [], "at {:?}", self.now);
        assert_eq!(asked, renewed, "at {:?}", self.now);
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
        self.store.receive(key(1), Received { reply, cost, charged, asked, sent, at, now });
        self.done(None);
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
                self.give_back();
                let life = at - sent.mono + (ahead * 5 / 2).min(LONGEST);
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
            2 => {
                if self.has_ended() {
                    self.give_back();
                }
                let is_out = self.hand.permits > 0;
                assert_eq!(self.store.maintain(self.now).is_busy, is_out);
                self.done(None);
            }
            3 => {
                let question = self.store.question((key(1), 0), self.now, false, false);
                let lost = answer(Question::Rule(question), QuestionResult::Degraded);
                self.store.on_reply(key(1).into(), &lost, self.now);
                self.asking = None;
            }
            _ => self.request(),
        }
    }
}

/// Each block is spent in its time, renewed before it is spent, and its rest is returned once. A
/// refusal is remembered for its time.
#[test]
fn worker_agrees_with_a_record_of_replies() {
    let mut rng = Rng::with_seed(kit::seed::next());
    let mut seen = [0; 6];
    for _ in 0..600 {
        let mut redis_rule = RedisRule::new(rng.fork());
        (0..500).for_each(|_| redis_rule.step());
        redis_rule.give_back();
        redis_rule.store.close(redis_rule.now);
        redis_rule.done(None);
        seen.iter_mut().zip(redis_rule.seen).for_each(|(sum, of)| *sum += of);
    }
    assert!(seen.iter().all(|number| *number > 500), "{seen:?}");
}
