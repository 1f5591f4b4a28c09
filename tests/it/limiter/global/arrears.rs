//! Permits that a gateway admits without Redis are charged at Redis afterwards.

use kit::model::redis::Redis;

use super::{Worker, request};

const LIMIT: usize = 10;

fn rule(algo: &str, unit: &str) -> String {
    format!("actor: account, unit: {unit}, rpu: {LIMIT}, algo: {algo}, scope: global")
}

/// A worker whose gateway has admitted `count` requests without Redis.
fn worker_in_arrears(rule: &str, count: usize) -> Worker {
    let mut worker = Worker::new(rule);
    worker.away(50);
    (1..count).for_each(|_| worker.request(&request()));
    assert_eq!(worker.admitted(), count);
    worker
}

#[test]
fn expired_permits_are_not_charged() {
    for algo in ["W", "SW", "TB"] {
        let rule = rule(algo, "second");
        let (mut worker, mut redis) = (worker_in_arrears(&rule, 6), Redis::default());
        // All of them expire or drain until Redis is back.
        worker.steps(3000, &mut |_, _| None);
        worker.back(&mut redis);
        (0..15).for_each(|_| worker.request(&request()));
        worker.steps(10, &mut |call, time| Some(redis.answer(&call.body, time)));
        assert_eq!(worker.admitted(), 6 + LIMIT, "{algo}");
    }
}

/// A slow caller that needed no more than its limit is not refused after an outage.
#[test]
fn drained_permits_are_not_charged() {
    let (mut worker, mut redis) = (Worker::new(&rule("TB", "second")), Redis::default());
    worker.away(50);
    for _ in 0..30 {
        worker.request(&request());
        worker.steps(200, &mut |_, _| None);
    }
    assert_eq!(worker.admitted(), 31);
    worker.back(&mut redis);
    worker.request(&request());
    worker.steps(10, &mut |call, time| Some(redis.answer(&call.body, time)));
    assert_eq!(worker.admitted(), 32);
}
