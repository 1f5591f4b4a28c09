//! What is settled in Redis is settled once, whatever becomes of calls and answers.

use std::rc::Rc;

use diana_core::algorithm::fixed_window;
use diana_core::policy::Quota;
use diana_core::redis::part::Part;
use diana_core::redis::pending::Settled;
use diana_core::redis::protocol::{Back, Charge, Numbers, Reply};
use diana_core::time::{Micros, Unit};
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::model::redis::Redis;
use kit::seed;

use super::{MILLISECOND, Worker, charge, ok, requests};

const START: Micros = 1_700_000_000_000_000;

const LIMIT: u64 = 1_000_000;

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

/// Lets everything happen that is due, while some calls get lost there, and some answers back.
fn pass(
    worker: &mut Worker,
    redis: &mut Redis,
    ways: &mut Vec<Way>,
    now: Micros,
    lost: u32,
    rng: &mut Rng,
) {
    worker.work(now);
    for (token, call) in worker.calls.fresh() {
        ways.push(Way { token, body: call.body, due: now + rng.u64(1..30) * MILLISECOND });
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
    let mut rng = Rng::with_seed(seed::fresh());
    for round in 0..20 {
        let lost = [0, 10, 40][round % 3];
        let data = Rc::new(FakeSharedData::default());
        let mut worker = Worker::of(&data);
        let (mut redis, mut ways) = (Redis::default(), Vec::new());
        let (mut used, mut now) = (0, 0);
        for _ in 0..400 {
            now += MILLISECOND;
            for _ in 0..rng.u32(0..3) {
                let permits = rng.u64(1..100);
                used += permits;
                let debt = own(0, Back::Debt { permits });
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
            pass(&mut worker, &mut redis, &mut ways, now, lost, &mut rng);
        }
        worker.handle.in_use = true;
        for _ in 0..20_000 {
            now += MILLISECOND;
            pass(&mut worker, &mut redis, &mut ways, now, 0, &mut rng);
        }
        assert!(!worker.handle.has_operations(), "something is left to be settled");
        worker.ask_for(vec![own(1, Back::Nothing)], now);
        worker.work(now);
        let (token, call) = worker.calls.one();
        let told = worker.answer(token, &ok(redis.answer(&call.body, START + now)), now).unwrap();
        let Settled::Decided { reply: Reply::Rule(reply), .. } = requests(told)[0].1 else {
            panic!("Redis has not decided");
        };
        assert_eq!(reply.remaining, LIMIT - used - 1, "lost: {lost} %");
        assert_eq!(worker.handle.ledgers.dropped, 0);
    }
}
