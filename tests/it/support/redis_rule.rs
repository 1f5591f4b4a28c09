//! One rule of a worker that Redis counts, with invented replies.

use std::cell::RefCell;
use std::rc::Rc;

use diana_policy::Quota;
use diana_policy::decision::Retry;
use diana_policy::time::{Now, SECOND, Unit};
use diana_redis::outbox::{Operation, Outbox};
use diana_redis::protocol::{Charge, Question, Reply, RuleReply};
use diana_redis::store::RedisStore;
use diana_store::lease::{Received, Wanted};
use diana_store::replies::QuestionResult;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::usage::Order;
use diana_store::{CounterSpec, Reservation, Store};
use kit::fake::CountingData;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::together;
use kit::store::{Take, answer};

/// One rule of a worker, with a single caller.
pub struct RedisRule {
    pub store: RedisStore,
    pub outbox: Rc<RefCell<Outbox>>,
    pub data: Rc<CountingData>,
}

/// Redis admits, and leases a block.
pub fn lends(block: u64) -> RuleReply {
    RuleReply {
        retry: None,
        is_outstanding: false,
        remaining: 500,
        receipt: 3,
        term: 4,
        block,
        lease: 5,
        charged: 0,
        spend: SECOND / 20,
        overflow: false,
    }
}

pub fn refuses(retry: u64, is_outstanding: bool) -> RuleReply {
    RuleReply { retry: Some(Retry::After(retry)), is_outstanding, remaining: 0, ..lends(0) }
}

/// The block of each question.
pub const ASKED: Wanted = Wanted { permits: 1, ahead: SECOND / 50 };

/// A reply to a question that asked for a block of requests of `cost` permits.
pub fn received(
    reply: &RuleReply,
    (cost, charged): (u64, u64),
    (sent, now): (Now, Now),
) -> Received<'_> {
    Received { reply, cost, charged, asked: ASKED, sent, at: sent.mono, now }
}

impl RedisRule {
    pub fn new(short: &str, rpu: u64) -> RedisRule {
        RedisRule::of(Rule::new(short, Quota::new(Unit::Second, rpu)).spec(100))
    }

    pub fn of(spec: CounterSpec) -> RedisRule {
        let data = Rc::<CountingData>::default();
        let mut tables = Tables::default();
        let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
        let outbox = together();
        let store = RedisStore::new(spec, 0, outbox.clone(), &mut stores).unwrap();
        RedisRule { store, outbox, data }
    }

    pub fn check(&mut self, after: u64) -> Reservation {
        self.store.checked(key(1).into(), 1, START.later(after))
    }

    /// Requests that this worker cannot decide.
    pub fn ask(&mut self, requests: u64, after: u64) -> Charge {
        let charge = self.store.question((key(1), 1), START.later(after), false, false);
        assert!((0..requests).all(|_| self.check(after).is_pending()));
        charge
    }

    pub fn on_reply(&mut self, reply: &RuleReply, sent: u64, after: u64) {
        let instants: (Now, Now) = (START.later(sent), START.later(after));
        self.store.receive(key(1), received(reply, (1, 0), instants));
    }

    /// A question that no request waits for fails.
    pub fn fail(&mut self, now: Now) {
        let question = self.store.question((key(1), 0), now, false, false);
        let replies = answer(Question::Rule(question), QuestionResult::Degraded);
        self.store.on_reply(key(1).into(), &replies, now);
    }

    /// An operator resets the caller's usage.
    pub fn reset(&mut self) {
        let asked = self.store.ask_usage(key(1).into(), Order::Reset);
        let (reply, wait, sent) = (Reply::Rule(lends(0)), Some(0), START);
        let result = QuestionResult::Decided { reply, wait, sent, at: START.mono, there: 0 };
        let replies = answer(asked.unwrap().unwrap(), result);
        assert!(self.store.inquire(key(1).into(), Order::Reset, &replies, START).is_ok());
    }

    /// Pending renewals that no request waits for.
    pub fn renewals(&mut self) -> usize {
        let renews =
            |it: &Operation| matches!(it, Operation::Renew(0, _, charge) if charge.want > 0);
        let all = self.outbox.borrow_mut().take(usize::MAX);
        assert!(all.iter().all(renews), "{all:?}");
        all.len()
    }
}
