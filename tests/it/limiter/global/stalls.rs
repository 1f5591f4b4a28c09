//! A worker that stood still, or was cut off from Redis, and has open requests under `in_flight`.

use diana_policy::port::Clock;
use diana_policy::time::SECOND;
use kit::ending::FakeEnding;
use kit::model::redis::Redis;

use super::{Worker, request};

const LIMIT: usize = 3;

/// However often it stalls, it never has more of them than the limit.
#[test]
fn stalled_worker_reports_its_slots_before_it_takes_one() {
    let rule = format!("actor: account, in_flight: {LIMIT}, scope: global");
    let (mut worker, mut redis) = (Worker::new(&rule), Redis::default());
    for stall in [0, 1, 2, 3, 10, 2, 2] {
        worker.clock.0.set(worker.clock.0.get().later(stall * SECOND));
        for _ in 0..2 * LIMIT {
            worker.request(&request());
            worker.steps(40, &mut |call, time| Some(redis.answer(&call.body, time)));
        }
        assert_eq!(worker.permits.len(), LIMIT, "after {stall} s");
        let now = worker.clock.now();
        let permit = worker.permits.remove(0);
        worker.limiter.finish(permit, &FakeEnding::answered(200), now);
        worker.steps(40, &mut |call, time| Some(redis.answer(&call.body, time)));
        worker.request(&request());
        worker.steps(40, &mut |call, time| Some(redis.answer(&call.body, time)));
        assert_eq!(worker.permits.len(), LIMIT, "one is free after {stall} s");
    }
}

/// Its reports are not confirmed, so no request takes a slot.
#[test]
fn worker_without_confirmed_reports_takes_no_slot() {
    let rule = format!("actor: account, in_flight: {LIMIT}, scope: global");
    let (mut worker, mut redis) = (Worker::new(&rule), Redis::default());
    worker.request(&request());
    worker.steps(40, &mut |call, time| Some(redis.answer(&call.body, time)));
    assert_eq!(worker.permits.len(), 1);
    worker.clock.0.set(worker.clock.0.get().later(2 * SECOND));
    worker.request(&request());
    assert_eq!((worker.verdicts.pop(), worker.waiting.len()), (Some(false), 0), "without Redis");
    worker.steps(40, &mut |call, time| Some(redis.answer(&call.body, time)));
    worker.request(&request());
    worker.steps(40, &mut |call, time| Some(redis.answer(&call.body, time)));
    assert_eq!((worker.verdicts.pop(), worker.permits.len()), (Some(true), 2));
}
