//! What is settled in Redis is settled once, whatever becomes of calls and answers.

mod secret;

use std::rc::Rc;

use diana_core::algorithm::fixed_window;
use diana_core::key::{Key, Seed};
use diana_core::policy::Quota;
use diana_core::policy::redis::OnFailure;
use diana_core::redis::client::{Client, Endpoint};
use diana_core::redis::handle::Handle;
use diana_core::redis::part::{Part, Parts};
use diana_core::redis::pending::Settled;
use diana_core::redis::protocol::{Back, Charge, Login, Numbers, Reply};
use diana_core::time::{Micros, SECOND, Unit};
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::model::proxy::Proxy;
use kit::model::redis::Redis;
use kit::seed;

use super::parts::steps;
use super::{MILLISECOND, Worker, charge, ok, requests};

const START: Micros = 1_700_000_000_000_000;

const LIMIT: u64 = 1_000_000;

/// Most charges that wait.
const MOST: u64 = 8192;

fn own(cost: u64, back: Back) -> Charge {
    let numbers = Numbers::of_rule(&fixed_window::ENTRY, &Quota::new(Unit::Day, LIMIT)).unwrap();
    Charge { numbers, cost, back, ..charge(1) }
}

/// A call that is on its way.
struct Way {
    token: u32,
    body: Vec<u8>,
    due: Micros,
}

/// How the way to Redis and back is.
#[derive(Debug, Clone, Copy)]
struct Net {
    /// How many of a hundred calls get lost there, and answers back.
    lost: u32,
    /// The milliseconds that a call takes at most, with its answer.
    longest: u64,
}

/// Lets everything happen that is due.
fn pass(
    worker: &mut Worker,
    redis: &mut Redis,
    ways: &mut Vec<Way>,
    now: Micros,
    Net { lost, longest }: Net,
    rng: &mut Rng,
) {
    worker.work(now);
    for (token, call) in worker.calls.fresh() {
        ways.push(Way { token, body: call.body, due: now + rng.u64(1..=longest) * MILLISECOND });
    }
    let (due, rest): (Vec<Way>, Vec<Way>) =
        std::mem::take(ways).into_iter().partition(|way| way.due <= now);
    *ways = rest;
    for Way { token, body, .. } in due {
        if rng.u32(0..100) < lost {
            continue;
        }
        let answer = redis.answer(&body, START + now);
        if rng.u32(0..100) >= lost {
            // One that comes too late is nobody's any more.
            worker.answer(token, &ok(answer), now);
        }
    }
}

#[test]
fn a_settlement_counts_once() {
    let mut rng = Rng::with_seed(seed::next());
    for round in 0..20 {
        // Some answers come when nobody waits for them any more.
        let net = Net { lost: [0, 10, 40][round % 3], longest: 29 };
        let data = Rc::new(FakeSharedData::default());
        let mut worker = Worker::of(&data);
        let (mut redis, mut ways) = (Redis::default(), Vec::new());
        let (mut used, mut now) = (0, 0);
        for _ in 0..400 {
            // At times nothing is left to be settled.
            now += if rng.u32(0..50) == 0 { 100 * MILLISECOND } else { MILLISECOND };
            for _ in 0..if rng.u32(0..4) == 0 { rng.u32(0..9) } else { 0 } {
                let permits = rng.u64(1..100);
                used += permits;
                let debt = own(0, Back::Debt { receipt: 0, permits });
                worker.handle.ledgers.add(Part::FIRST, debt);
            }
            if rng.u32(0..200) == 0 {
                // The root has ended that made the calls.
                worker.client.lose(0, &mut worker.handle);
            }
            if rng.u32(0..200) == 0 {
                // Its engine has ended, and another one follows. What was on its way nobody waits for any more.
                let mut left = worker;
                worker = Worker::of(&data);
                worker.client.inherit(&mut worker.handle, &left.client, &mut left.handle);
                for way in ways.drain(..).filter(|_: &Way| rng.bool()) {
                    redis.answer(&way.body, START + now);
                }
            }
            pass(&mut worker, &mut redis, &mut ways, now, net, &mut rng);
        }
        // From now on all of them come in time, but those that were on their way.
        let net = Net { lost: 0, longest: 19 };
        let end = now + 20 * SECOND;
        worker.handle.in_use = true;
        while worker.handle.ledgers.is_any() || !worker.is_together() || !ways.is_empty() {
            now += MILLISECOND;
            assert!(now < end, "something is left to be settled");
            pass(&mut worker, &mut redis, &mut ways, now, net, &mut rng);
        }
        worker.ask_for(vec![own(1, Back::Nothing)], now);
        worker.work(now);
        let (token, call) = worker.calls.one();
        let told = worker.answer(token, &ok(redis.answer(&call.body, START + now)), now).unwrap();
        let Settled::Decided { reply: Reply::Rule(reply), .. } = requests(told)[0].1 else {
            panic!("Redis has not decided");
        };
        assert_eq!(reply.remaining, LIMIT - used - 1, "{net:?}");
        assert_eq!(worker.handle.ledgers.dropped, 0);
    }
}

/// Has Redis answer whatever is asked. What became of requests.
fn serve(worker: &mut Worker, redis: &mut Redis, now: Micros) -> Vec<(u64, Settled)> {
    let mut told = requests(worker.work(now));
    loop {
        let calls = worker.calls.fresh();
        if calls.is_empty() {
            return told;
        }
        for (token, call) in calls {
            let answer = ok(redis.answer(&call.body, START + now));
            told.extend(requests(worker.answer(token, &answer, now).unwrap()));
        }
    }
}

/// Has Redis answer until nothing is left to be settled. How many permits are used.
fn settle_all(worker: &mut Worker, redis: &mut Redis, mut now: Micros) -> u64 {
    worker.handle.in_use = true;
    while worker.handle.has_operations() {
        now += MILLISECOND;
        serve(worker, redis, now);
    }
    worker.ask_for(vec![own(1, Back::Nothing)], now);
    let told = serve(worker, redis, now);
    let [(_, Settled::Decided { reply: Reply::Rule(reply), .. })] = told[..] else {
        panic!("Redis has not decided");
    };
    LIMIT - reply.remaining - 1
}

fn add(worker: &mut Worker, count: u64) {
    for _ in 0..count {
        worker.handle.ledgers.add(Part::FIRST, own(0, Back::Debt { receipt: 0, permits: 1 }));
    }
}

/// There is memory for so many. What is beyond that, or of one that ended does not fit, is told of.
#[test]
fn what_finds_no_room_is_told_of_and_all_else_is_settled() {
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
        new.client.inherit(&mut new.handle, &old.client, &mut old.handle);
        assert!(!old.handle.ledgers.is_any());
        assert_eq!(new.handle.ledgers.is_any(), left + own > 0);
        assert_eq!(new.handle.ledgers.dropped, dropped, "{left} and {own}");
        assert_eq!(settle_all(&mut new, &mut redis, 0), left + own - dropped);
        // There is room again.
        add(&mut new, MOST);
        assert_eq!(new.handle.ledgers.dropped, dropped);
        assert_eq!(settle_all(&mut new, &mut redis, SECOND), left + own - dropped + 1 + MOST);
    }
}

/// What is to be settled in a part goes there, whoever left it.
#[test]
fn each_part_settles_what_lies_there() {
    let parts = Parts::new(4);
    let data = Rc::new(FakeSharedData::default());
    let mut proxy = Proxy::default();
    let [mut old, mut new] = [(); 2].map(|()| Worker::of_parts(&data, parts));
    let of = |part: u64| Key { hash: part << 62 | 1, second_hash: part << 62 | 1 };
    let mut expected = [0; 4];
    for round in 1..50 {
        for (worker, number) in [(&mut old, round % 4), (&mut new, round % 3)] {
            let charge =
                Charge { caller: of(number), ..own(0, Back::Debt { receipt: 0, permits: round }) };
            worker.handle.ledgers.add(parts.of(of(number)), charge);
            expected[number as usize] += round;
        }
    }
    new.client.inherit(&mut new.handle, &old.client, &mut old.handle);
    new.handle.in_use = true;
    steps(&mut new, &mut proxy, 0, 1000);
    assert!(!new.handle.ledgers.is_any());
    for number in 0..4 {
        new.ask_for(vec![Charge { caller: of(number), ..own(1, Back::Nothing) }], SECOND);
        let told = steps(&mut new, &mut proxy, SECOND, 10);
        let [(_, Settled::Decided { reply: Reply::Rule(reply), .. })] = told[..] else { panic!() };
        assert_eq!(reply.remaining, LIMIT - expected[number as usize] - 1, "part {number}");
    }
}

/// Numbers of batches, and names of callers, mean something only where they were given.
#[test]
fn nobody_settles_what_lies_elsewhere() {
    let seed = Seed { k0: 1, k1: 2 };
    let client = |cluster: &str, db: u32, parts: u16, namespace: &str, seed: Seed| {
        let login = Login { db, ..Login::default() };
        let way =
            Endpoint { cluster: cluster.into(), timeout: 20, login, parts: Parts::new(parts) };
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
        let mut handles = [(); 2].map(|()| Handle::new(OnFailure::Gateway, Parts::ONE));
        let [own, left] = &mut handles;
        left.ledgers.add(Part::FIRST, self::own(0, Back::Debt { receipt: 0, permits: 1 }));
        assert_eq!(heir.inherit(own, &old, left), is_alike);
        assert_eq!((own.ledgers.is_any(), left.ledgers.is_any()), (is_alike, !is_alike));
    }
}
