//! Settlements in Redis are processed once, regardless of lost calls and replies.

mod secret;

use std::rc::Rc;

use diana_algorithm::fixed_window;
use diana_policy::Quota;
use diana_policy::key::Seed;
use diana_policy::port::Destination;
use diana_policy::redis::OnFailure;
use diana_policy::time::{Micros, SECOND, Unit};
use diana_redis::client::{Client, Endpoint};
use diana_redis::outbox::Outbox;
use diana_redis::protocol::{Charge, Effect, Login, Numbers, Reply};
use diana_redis::shard::{Shard, Shards};
use diana_store::replies::QuestionResult;
use kit::fake::FakeSharedData;
use kit::model::redis::Redis;

use super::{MILLISECOND, Worker, charge, ok, requests};

const START: Micros = 1_700_000_000_000_000;

const LIMIT: u64 = 1_000_000;

/// Maximum number of waiting charges.
const MOST: u64 = 8192;

fn own(cost: u64, effect: Effect) -> Charge {
    let numbers = Numbers::of_rule(&fixed_window::ENTRY, &Quota::new(Unit::Day, LIMIT)).unwrap();
    Charge { numbers, cost, effect, ..charge(1) }
}

/// Lets Redis reply to all calls. Returns the outcomes of requests.
fn serve(worker: &mut Worker, redis: &mut Redis, now: Micros) -> Vec<(u64, QuestionResult)> {
    let mut results = requests(worker.work(now));
    loop {
        let calls = worker.calls.fresh();
        if calls.is_empty() {
            return results;
        }
        for (token, call) in calls {
            let answer = ok(redis.answer(&call.body, START + now));
            results.extend(requests(worker.answer(token, &answer, now).unwrap()));
        }
    }
}

/// Lets Redis reply until all settlements are done. Returns the used permits.
fn settle_all(worker: &mut Worker, redis: &mut Redis, mut now: Micros) -> u64 {
    worker.outbox.in_use = true;
    while worker.outbox.has_operations() {
        now += MILLISECOND;
        serve(worker, redis, now);
    }
    worker.ask_for(vec![own(1, Effect::None)], now);
    let results = serve(worker, redis, now);
    let [(_, QuestionResult::Decided { reply: Reply::Rule(reply), .. })] = results[..] else {
        panic!("Redis has not decided");
    };
    LIMIT - reply.remaining - 1
}

fn add(worker: &mut Worker, count: u64) {
    for _ in 0..count {
        worker
            .outbox
            .ledgers
            .add(Shard::FIRST, own(0, Effect::ChargeDebt { receipt: 0, permits: 1 }));
    }
}

/// Memory is bounded. Settlements beyond the bound, or inherited ones that do not fit, are reported
/// as dropped.
#[test]
fn settlements_beyond_the_bound_are_reported_as_dropped() {
    for (left, own, dropped) in [
        (0, MOST, 0),
        (0, MOST + 7, 7),
        (4000, MOST - 4000, 0),
        (4000, MOST - 3999, 4000),
        (MOST + 5, 0, 5),
        (MOST + 5, 1, MOST + 5),
    ] {
        let data = Rc::new(FakeSharedData::default());
        let mut redis = Redis::default();
        let [mut old, mut new] = [(); 2].map(|()| Worker::of(&data));
        add(&mut old, left);
        add(&mut new, own);
        new.client.inherit(&mut new.outbox, &old.client, &mut old.outbox);
        assert!(!old.outbox.ledgers.is_any());
        assert_eq!(new.outbox.ledgers.is_any(), left + own > 0);
        assert_eq!(new.outbox.ledgers.dropped, dropped, "{left} and {own}");
        assert_eq!(settle_all(&mut new, &mut redis, 0), left + own - dropped);
        // There is room again.
        add(&mut new, MOST);
        assert_eq!(new.outbox.ledgers.dropped, dropped);
        assert_eq!(settle_all(&mut new, &mut redis, SECOND), left + own - dropped + 1 + MOST);
    }
}

/// Numbers of batches and keys of callers are only valid where they were assigned.
#[test]
fn settlements_of_another_redis_are_not_inherited() {
    let seed = Seed { k0: 1, k1: 2 };
    let client = |cluster: &str, db: u32, parts: u16, namespace: &str, seed: Seed| {
        let login = Login { db, ..Login::default() };
        let (destination, shards) = (Destination::Cluster(cluster.into()), Shards::new(parts));
        let way = Endpoint { destination, timeout: 20, login, shards, gateways: 1 };
        Client::new(way, namespace, Rc::new(FakeSharedData::default()), seed, 5)
    };
    let heir = client("redis", 0, 1, "test", seed);
    for (old, is_alike) in [
        (client("redis", 0, 1, "test", seed), true),
        (client("other", 0, 1, "test", seed), false),
        (client("redis", 1, 1, "test", seed), false),
        (client("redis", 0, 2, "test", seed), false),
        (client("redis", 0, 1, "other", seed), false),
        (client("redis", 0, 1, "test", Seed { k0: 1, k1: 3 }), false),
    ] {
        let mut handles = [(); 2].map(|()| Outbox::new(OnFailure::Gateway, Shards::ONE));
        let [own, left] = &mut handles;
        left.ledgers.add(Shard::FIRST, self::own(0, Effect::ChargeDebt { receipt: 0, permits: 1 }));
        assert_eq!(heir.inherit(own, &old, left), is_alike);
        assert_eq!((own.ledgers.is_any(), left.ledgers.is_any()), (is_alike, !is_alike));
    }
}
