//! Permits that a gateway admits without Redis are charged at Redis afterwards.

use std::rc::Rc;

use diana_policy::port::Call;
use diana_policy::redis::OnFailure;
use kit::fake::FakeSharedData;
use kit::model::redis::Redis;

use super::{SEED, Worker, request};

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

/// Another worker had no request during the outage, and its first one comes at once afterwards, or after a while.
#[test]
fn question_of_another_worker_charges_the_share() {
    let text = format!(
        "redis: {{cluster: redis}}\nlimits: [{{Url: /, rules: [{{{}}}]}}]",
        rule("W", "day")
    );
    for later in [0, 2000] {
        let data = Rc::new(FakeSharedData::default());
        let start = || Worker::in_gateway(data.clone(), &text, OnFailure::Gateway, SEED);
        let (mut first, mut second, mut redis) = (start(), start(), Redis::default());
        first.away(50);
        (0..3).for_each(|_| first.request(&request()));
        let mut elsewhere = Worker::new(&rule("W", "day"));
        assert_eq!(elsewhere.admits(LIMIT - 4, &mut redis), LIMIT - 4);
        first.back(&mut redis);
        second.clock.0.set(first.clock.0.get());
        second.steps(later, &mut |call, time| Some(redis.answer(&call.body, time)));
        assert_eq!(second.admits(1, &mut redis), 0, "the arrears leave no permit");
    }
}

/// Permits of lost replies, or of slices that the gateway counts by another clock, may leave no room for arrears. When
/// they expire, the arrears still count.
#[test]
fn arrears_outlast_earlier_usage_of_a_sliding_window() {
    let (mut worker, mut redis) = (Worker::new(&rule("SW", "minute")), Redis::default());
    worker.back(&mut redis);
    let before = redis.asks;
    (0..6).for_each(|_| worker.request(&request()));
    let mut lose = |call: &Call, time| {
        redis.answer(&call.body, time);
        None
    };
    worker.steps(50, &mut lose);
    assert_eq!(redis.asks - before, 6, "each question is charged once");
    worker.steps(30_000, &mut |_, _| None);
    (6..LIMIT).for_each(|_| worker.request(&request()));
    assert_eq!(worker.admitted(), LIMIT);
    worker.back(&mut redis);
    assert_eq!(worker.admits(1, &mut redis), 0);
    // The lost charges have expired, and the last four permits have not.
    worker.steps(35_000, &mut |call, time| Some(redis.answer(&call.body, time)));
    assert_eq!(worker.admits(LIMIT, &mut redis), 0);
    worker.steps(35_000, &mut |call, time| Some(redis.answer(&call.body, time)));
    assert_eq!(worker.admits(15, &mut redis), LIMIT);
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
