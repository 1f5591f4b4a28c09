//! What becomes of settlements when the fleet goes by another secret.

use std::rc::Rc;

use diana_policy::key::Seed;
use diana_redis::part::{Part, Parts};
use kit::fake::FakeSharedData;
use kit::model::redis::Redis;
use kit::model::wire::{Asking, commands};

use super::{MILLISECOND, MOST, START, Worker, add, charge, ok, serve, settle_all};

/// Nobody knows under the fleet's secret who they were that were hashed under another one. And no batch that is on its way
/// still is taken for one that leaves afterwards.
#[test]
fn what_was_to_be_settled_under_another_secret_is_given_up_and_told_of() {
    let data = Rc::new(FakeSharedData::default());
    let (mut before, mut now) = (Redis::default(), 0);
    let mut worker = Worker::of(&data);
    worker.handle.in_use = true;
    let number = |body: &[u8]| Asking::read(&commands(body)[0]).settles.unwrap().1;
    for _ in 0..3 {
        add(&mut worker, 3);
        now += MILLISECOND;
        serve(&mut worker, &mut before, now);
    }
    add(&mut worker, 70);
    let holder = worker.handle.ledgers.hold(Part::FIRST, charge(1), 1, now);
    now += MILLISECOND;
    worker.work(now);
    let (late, call) = worker.calls.one();
    assert_eq!(number(&call.body), 4);
    let answer = before.answer(&call.body, START + now);
    // Redis is another one by now, which goes by the secret of others, as another worker of the gateway finds out.
    let mut redis = Redis::default();
    let own = Seed { k0: 8, k1: 8 };
    let mut stranger = Worker::with_secret(&Rc::default(), Parts::ONE, own);
    let mut other = Worker::of(&data);
    for worker in [&mut stranger, &mut other] {
        worker.ask(9, now);
        serve(worker, &mut redis, now);
    }
    worker.work(now);
    assert_eq!(worker.handle.ledgers.dropped, 70);
    // Under the number by which places were held, those of callers whom nobody knows would be held for ever.
    assert_ne!(worker.handle.ledgers.hold(Part::FIRST, charge(2), 1, now), holder);
    add(&mut worker, 2);
    // A request does not wait for the answer to another one.
    worker.ask(9, now);
    now += 10 * MILLISECOND;
    worker.work(now);
    let (token, call) = worker.calls.one();
    assert!(number(&call.body) > 4, "that one may have been taken");
    worker.answer(late, &ok(answer), now);
    let answer = redis.answer(&call.body, START + now);
    worker.answer(token, &ok(answer), now);
    serve(&mut worker, &mut redis, now);
    assert_eq!(settle_all(&mut worker, &mut redis, now), 2);
    // There is room for as many as ever.
    add(&mut worker, MOST);
    assert_eq!(worker.handle.ledgers.dropped, 70);
}
