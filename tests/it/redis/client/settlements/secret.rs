//! Settlements when the fleet changes its secret.

use std::rc::Rc;

use diana_policy::key::Seed;
use diana_redis::shard::{Shard, Shards};
use kit::fake::FakeSharedData;
use kit::model::redis::Redis;
use kit::model::wire::{Asking, commands};

use super::{MILLISECOND, MOST, START, Worker, add, charge, ok, serve, settle_all};

/// The keys of callers under another secret are invalid. A batch in transit must not be confused
/// with a later one.
#[test]
fn changed_secret_drops_and_reports_settlements() {
    let data = Rc::new(FakeSharedData::default());
    let (mut before, mut now) = (Redis::default(), 0);
    let mut worker = Worker::of(&data);
    worker.outbox.in_use = true;
    let number = |body: &[u8]| Asking::read(&commands(body)[0]).settles.unwrap().1;
    for _ in 0..3 {
        add(&mut worker, 3);
        now += MILLISECOND;
        serve(&mut worker, &mut before, now);
    }
    add(&mut worker, 70);
    let holder = worker.outbox.ledgers.hold(Shard::FIRST, charge(1), 1, now);
    now += MILLISECOND;
    worker.work(now);
    let (late, call) = worker.calls.one();
    assert_eq!(number(&call.body), 4);
    let answer = before.answer(&call.body, START + now);
    // Redis has been replaced, and has the secret of other gateways, as another worker of the
    // gateway detects.
    let mut redis = Redis::default();
    let own = Seed { k0: 8, k1: 8 };
    let mut stranger = Worker::with_secret(&Rc::default(), Shards::ONE, own);
    let mut other = Worker::of(&data);
    for worker in [&mut stranger, &mut other] {
        worker.ask(9, now);
        serve(worker, &mut redis, now);
    }
    worker.work(now);
    assert_eq!(worker.outbox.ledgers.dropped, 70);
    // Under the former holder number, the slots of unknown callers would be held forever.
    assert_ne!(worker.outbox.ledgers.hold(Shard::FIRST, charge(2), 1, now), holder);
    add(&mut worker, 2);
    // A request does not wait for the reply to another one.
    worker.ask(9, now);
    now += 6 * MILLISECOND;
    worker.work(now);
    let (token, call) = worker.calls.one();
    assert!(number(&call.body) > 4, "that one may have been taken");
    worker.answer(late, &ok(answer), now);
    let answer = redis.answer(&call.body, START + now);
    worker.answer(token, &ok(answer), now);
    serve(&mut worker, &mut redis, now);
    assert_eq!(settle_all(&mut worker, &mut redis, now), 2);
    // There is full room again.
    add(&mut worker, MOST);
    assert_eq!(worker.outbox.ledgers.dropped, 70);
}
