//! Decisions of a worker about one caller of Redis, compared with a record of all replies.

use std::cell::RefCell;
use std::rc::Rc;

use diana_policy::decision::Decision;
use diana_policy::time::{Micros, Now, SECOND, Unit};
use diana_policy::{MAX_DRAINED, Quota};
use diana_redis::outbox::{Operation, Outbox};
use diana_redis::protocol::{Effect, RuleReply};
use diana_redis::store::RedisStore;
use diana_store::Store;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::together;
use kit::store::{Decided, Take};

use crate::support::gateway::MS;
use crate::support::redis_rule::{lends, refuses};

/// The longest life of a lease, and the time of demand that it covers.
const LIFE: Micros = 50 * MS;
const AHEAD: Micros = 20 * MS;

/// How long a busy caller is refused after a refusal, while a call to Redis is pending.
const SHORT: Micros = 100 * MS;

/// Demand is counted in consecutive spans of this length, each with at least one request.
const SPAN: Micros = SECOND / 10;

/// All spans with requests: the start of each, and the number of requests.
#[derive(Default)]
struct Demand(Vec<(Micros, u64)>);

impl Demand {
    fn see(&mut self, at: Micros) {
        match self.0.last_mut() {
            Some((begins, seen)) if at < *begins + SPAN => *seen += 1,
            Some(&mut (begins, _)) if at < begins + 2 * SPAN => self.0.push((begins + SPAN, 1)),
            _ => self.0.push((at, 1)),
        }
    }

    /// Requests in the last two spans, and the length of these.
    fn lately(&self, at: Micros) -> (u64, Micros) {
        let Some(&(begins, during)) = self.0.last() else { return (0, at) };
        match self.0.iter().rev().nth(1).filter(|(earlier, _)| earlier + SPAN == begins) {
            Some((earlier, before)) => (before + during, at - earlier),
            None => (during, at - begins),
        }
    }

    fn is_busy(&self, at: Micros) -> bool {
        self.lately(at).0 >= 20
    }

    /// Permits to lease.
    fn wants(&self, cost: u64, at: Micros) -> u64 {
        let (seen, lasted) = self.lately(at);
        if seen < 20 { 0 } else { (seen * AHEAD / lasted.max(SPAN / 8)).max(1) * cost }
    }
}

/// Leased permits.
#[derive(Clone, Copy, Default)]
struct Held {
    receipt: u64,
    permits: u64,
    left: u64,
    ends: Now,
}

impl Held {
    fn has(&self, permits: u64, now: Now) -> bool {
        self.left >= permits && now.mono < self.ends.mono && now.wall < self.ends.wall
    }
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
    asking: bool,
    /// The latest refusal: its cost, its arrival, the end of the memory of it, and when the request
    /// fits.
    refused: Option<(u64, Micros, Micros, Micros)>,
    /// Blocks to return.
    back: Vec<Effect>,
    /// Requests by lease, refused by memory, refused while a call is pending, sent to Redis;
    /// renewals.
    seen: [u64; 5],
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
            asking: true,
            refused: None,
            back: Vec::new(),
            seen: [0; 5],
        }
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
        let (_, since, until, fits) = self.refused.unwrap_or_default();
        let turns = [self.hand.ends.mono, since + SHORT, until, fits];
        let turn = self.rng.choice(turns).unwrap();
        let until = (turn + self.rng.u64(0..3)).saturating_sub(self.now.mono + 1);
        let ticks = match self.rng.u8(0..24) {
            0..2 if until < SECOND => until,
            2 => self.rng.u64(0..SPAN),
            _ => self.rng.u64(0..MS),
        };
        self.now = self.now.later(ticks);
        if self.rng.u8(0..100) == 0 {
            self.now.wall += self.rng.u64(0..LIFE);
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
            let ends_soon = self.hand.ends.mono < now.mono + AHEAD / 2;
            self.done(self.hand.left <= self.hand.permits / 2 || ends_soon);
            if self.rng.u8(0..8) == 0 {
                self.store.cancel(&mut found);
                self.hand.left += cost;
            }
            return;
        }
        if let Some((least, since, until, fits)) = self.refused {
            if now.mono < until && cost >= least {
                self.seen[1] += 1;
                let retry = fits.saturating_sub(now.mono).max(1);
                assert_eq!(found.decision(), Decision::retry(retry));
                return self.done(false);
            }
            if self.asking && now.mono - since < SHORT && self.demand.is_busy(now.mono) {
                self.seen[2] += 1;
                assert!(found.is_outstanding() && !found.decision().is_admitted());
                return self.done(false);
            }
        }
        self.seen[3] += 1;
        assert!(found.is_pending());
        self.give_back();
        self.done(false);
        if self.rng.bool() {
            let want = self.store.question((key(1), cost), now, false, false).want;
            let wanted = if self.asking { 0 } else { self.demand.wants(cost, now.mono) };
            assert_eq!(want, wanted);
            self.asking = true;
        }
    }

    /// Handles operations of Redis: returns of blocks, and a renewal if it is due.
    fn done(&mut self, is_due: bool) {
        let mut back = Vec::new();
        let mut asked = 0;
        for operation in self.outbox.borrow_mut().take(usize::MAX) {
            match operation {
                Operation::Return(charge) => back.push(charge.effect),
                Operation::Renew(3, _, charge) => asked += charge.want,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(back, std::mem::take(&mut self.back), "at {:?}", self.now);
        let unit_cost = self.rule.spec(1).unit_cost;
        let is_asked = is_due && !self.asking;
        let wanted = if is_asked { self.demand.wants(unit_cost, self.now.mono) } else { 0 };
        assert_eq!(asked, wanted, "at {:?}", self.now);
        self.asking |= asked > 0;
        self.seen[4] += u64::from(asked > 0);
    }

    fn answer(&mut self) {
        let now = self.now;
        let ago = self.rng.u64(0..5 * MS);
        let sent = Now { mono: now.mono - ago, wall: now.wall - ago };
        self.asking = false;
        let reply = if self.rng.u8(0..3) == 0 {
            let retry = self.rng.u64(1..2 * SECOND) >> self.rng.u8(0..12);
            let is_outstanding = self.rng.bool();
            let longest = if is_outstanding { 20 * MS } else { SECOND };
            let until = sent.mono + retry.min(longest);
            self.refused = Some((self.rule.quota.cost, now.mono, until, now.mono + retry));
            refuses(retry, is_outstanding)
        } else {
            self.receipts += 2;
            let (permits, spend) = (self.rng.u64(0..20), self.rng.u64(1..2 * LIFE));
            if permits > 0 {
                self.give_back();
                let ends = sent.later(spend.min(LIFE));
                self.hand = Held { receipt: self.receipts, permits, left: permits, ends };
                // The refusal is forgotten, but is still recent.
                self.refused = self.refused.map(|(cost, since, _, fits)| (cost, since, 0, fits));
            }
            let (lease, term) = (self.receipts, self.receipts + 1);
            RuleReply { lease, term, spend, ..lends(permits) }
        };
        let asked = (self.rule.quota.cost, 0);
        self.store.receive(key(1), &reply, asked, (sent, now));
        self.done(false);
    }

    fn step(&mut self) {
        self.pass();
        match self.rng.u8(0..24) {
            0..2 => self.answer(),
            2 => {
                let is_over = self.hand.left == 0 || !self.hand.has(0, self.now);
                if is_over {
                    self.give_back();
                }
                let is_out = self.hand.permits > 0;
                assert_eq!(self.store.maintain(self.now).is_busy, is_out);
                self.done(false);
            }
            3 => {
                // There is no decision.
                self.outbox.borrow_mut().results.begin(0);
                self.store.on_reply(key(1).into(), self.now);
                self.asking = false;
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
    let mut seen = [0; 5];
    for _ in 0..600 {
        let mut redis_rule = RedisRule::new(rng.fork());
        (0..500).for_each(|_| redis_rule.step());
        redis_rule.give_back();
        redis_rule.store.close(redis_rule.now);
        redis_rule.done(false);
        seen.iter_mut().zip(redis_rule.seen).for_each(|(sum, of)| *sum += of);
    }
    assert!(seen.iter().all(|number| *number > 500), "{seen:?}");
}
