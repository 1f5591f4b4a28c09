//! Bans: the step for one caller's state, and the bans of a rule in each scope.

mod flood;
mod gateway;
mod law;
mod redis;
mod scopes;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use diana_policy::ban::WORDS;
use diana_policy::key::Key;
use diana_policy::port::SharedData;
use diana_policy::redis::OnFailure;
use diana_policy::time::{Now, SECOND, Unit};
use diana_policy::{Ban, Quota, Scope};
use diana_redis::bans::RedisBans;
use diana_redis::outbox::{Operation, Outbox};
use diana_redis::protocol::{BanReply, Question, Refusals, Reply};
use diana_redis::shard::Shards;
use diana_store::backend::BanAuthority;
use diana_store::bans::Bans;
use diana_store::replies::QuestionResult;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::usage::{Order, OrderError};
use kit::bans::{BAN, Calls};
use kit::fake::CountingData;
use kit::store::rule::Rule;

const TICK: u64 = SECOND / 10;
const KEYS: usize = 1000;
const SCOPES: [Scope; 3] = [Scope::Local, Scope::Gateway, Scope::Global];
const CALLER: Key = Key { hash: 0xa55, second_hash: 5 };
const OTHER: Key = Key { hash: 0xb0b, second_hash: 9 };

fn key(rng: &mut fastrand::Rng) -> Key {
    Key { hash: rng.u64(..), second_hash: rng.u64(..) }
}

/// The states of callers in Redis, by their hashes.
type Redis = Rc<RefCell<HashMap<u64, [u64; WORDS]>>>;

/// One worker. The simulated Redis replies at once, with the step in Rust.
struct Worker {
    bans: Bans,
    outbox: Rc<RefCell<Outbox>>,
    redis: Redis,
}

impl Worker {
    fn new<D: SharedData + 'static>(scope: Scope, data: &Rc<D>) -> Worker {
        Worker::of(BAN, scope, KEYS, data)
    }

    fn of<D: SharedData + 'static>(ban: Ban, scope: Scope, keys: usize, data: &Rc<D>) -> Worker {
        let mut tables = Tables::default();
        let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
        let outbox = Rc::new(RefCell::new(Outbox::new(OnFailure::Gateway, Shards::ONE)));
        let fleet = (scope == Scope::Global).then(|| authority(&ban, keys, &outbox));
        let bans = Bans::new(ban, scope, 1, keys, fleet, &mut stores);
        Worker { bans, outbox, redis: Redis::default() }
    }

    /// Several workers of one gateway. Only one for a `local` rule, since each of its workers
    /// counts separately.
    fn several(scope: Scope, count: usize) -> Vec<Worker> {
        let (data, redis) = (Rc::<CountingData>::default(), Redis::default());
        let count = if scope == Scope::Local { 1 } else { count };
        let worker = |_| Worker { redis: redis.clone(), ..Worker::new(scope, &data) };
        (0..count).map(worker).collect()
    }

    fn left(&mut self, key: Key, now: u64) -> u64 {
        self.bans.left(key, now);
        self.work(now);
        self.bans.left(key, now)
    }

    /// A reply of Redis arrives.
    fn on_reply(&mut self, key: Key, reply: &BanReply, now: u64) -> u64 {
        let (sent, at) = (Now::default(), now);
        let result = QuestionResult::Decided {
            reply: Reply::Ban(*reply),
            wait: Some(0),
            sent,
            at,
            there: at,
        };
        let question = self.bans.ask(key, None).expect("Redis counts");
        self.bans.on_reply(key, &kit::store::answer(question, result), now)
    }

    fn refused(&mut self, key: Key, now: u64) {
        self.bans.refused(key, now);
        self.work(now);
    }

    fn refused_times(&mut self, times: u64, key: Key, now: u64) {
        (0..times).for_each(|_| self.refused(key, now));
    }

    fn maintain(&mut self, now: u64) {
        self.bans.maintain_at(now);
        self.work(now);
    }

    /// An operator bans the caller, or lifts its ban.
    fn set(&mut self, key: Key, length: u64, now: u64) -> bool {
        let order = if length > 0 { Order::Ban(length) } else { Order::Unban };
        let replies = self.bans.ask(key, order.sets()).map(|question| {
            let Question::Ban(asked) = &question else { panic!("{question:?}") };
            let reply = Reply::Ban(answer(&self.redis, asked, now));
            let (wait, sent, at) = (Some(0), Now::default(), now);
            kit::store::answer(
                question,
                QuestionResult::Decided { reply, wait, sent, at, there: at },
            )
        });
        match self.bans.inquire(key, order, &replies.unwrap_or_default(), now) {
            Ok(_) => true,
            Err(cannot) => {
                assert_eq!(cannot, OrderError::NoRoom);
                false
            }
        }
    }

    fn work(&mut self, now: u64) {
        let operations = self.outbox.borrow_mut().take(usize::MAX);
        for operation in operations {
            let Operation::Ban(0, refusals) = operation else { panic!("{operation:?}") };
            let reply = answer(&self.redis, &refusals, now);
            self.on_reply(refusals.caller, &reply, now);
        }
    }
}

/// Redis as the authority of the bans.
fn authority(ban: &Ban, keys: usize, outbox: &Rc<RefCell<Outbox>>) -> Box<dyn BanAuthority> {
    let spec = Rule::new("W", Quota::new(Unit::Second, 1)).spec(keys);
    Box::new(RedisBans::new(0, 1, ban, &spec, outbox.clone()))
}

fn answer(redis: &Redis, asked: &Refusals, now: u64) -> BanReply {
    let mut states = redis.borrow_mut();
    let state = states.entry(asked.caller.hash).or_default();
    let mut begins = false;
    match asked.sets {
        Some(0) => Ban::reset(state, now),
        Some(length) => (state[0], state[1]) = (now + length, 0),
        None if asked.refusals > 0 => begins = BAN.count(state, now, asked.refusals),
        None => {}
    }
    ban_reply(BAN.left(Ban::until(state), now), begins)
}

/// A reply of Redis.
fn ban_reply(left: u64, begins: bool) -> BanReply {
    BanReply { retry: None, left, begins, overflow: false }
}
