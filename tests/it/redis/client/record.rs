//! The record of Redis's state that the workers of a gateway share.

use std::rc::Rc;

use diana_policy::port::SharedData;
use diana_policy::time::SECOND;
use diana_redis::shard::Shards;
use kit::fake::FakeSharedData;
use kit::model::proxy::Proxy;

use super::breaker::{KEY, gateway, run};
use super::shards::steps;
use super::{MILLISECOND, TIMEOUT, Worker, charge, ok};
use crate::support::redis::admits;

/// Replies to two probes, so that the breaker closes. Returns when it closed.
fn recover(worker: &mut Worker, mut now: u64) -> u64 {
    while !worker.is_connected() {
        now = worker.next(now).unwrap();
        worker.work(now);
        let (token, call) = worker.calls.one();
        worker.answer(token, &ok(admits(&call)), now);
    }
    now
}

#[test]
fn failure_soon_after_recovery_delays_the_probe() {
    for (calm, pause) in
        [(SECOND, 200), (10 * SECOND - 1, 200), (10 * SECOND, 100), (60 * SECOND, 100)]
    {
        let (_, mut workers) = gateway(1);
        let worker = &mut workers[0];
        worker.fail(0);
        assert_eq!(worker.next(0), Some(100 * MILLISECOND));
        let closed = recover(worker, 0);
        assert_eq!(closed, 150 * MILLISECOND);
        let again = closed + calm;
        worker.fail(again);
        assert_eq!(worker.next(again), Some(again + pause * MILLISECOND), "{calm} later");
    }
}

/// Earlier calls are no evidence that Redis is available now.
#[test]
fn only_probe_replies_end_degraded_mode() {
    let data = Rc::new(FakeSharedData::default());
    let mut workers = [(); 3].map(|()| Worker::with(&data, SECOND));
    let mut out = Vec::new();
    for worker in &mut workers[1..] {
        worker.ask(1, 0);
        worker.work(0);
        out.push(worker.calls.one());
    }
    workers[0].fail(0);
    let (token, call) = out.remove(0);
    workers[1].answer(token, &ok(admits(&call)), MILLISECOND);
    assert_eq!(workers[0].next(MILLISECOND), Some(100 * MILLISECOND));
    workers[0].work(100 * MILLISECOND);
    let (token, call) = workers[0].calls.one();
    workers[0].answer(token, &ok(admits(&call)), 101 * MILLISECOND);
    let (token, call) = out.remove(0);
    workers[2].answer(token, &ok(admits(&call)), 102 * MILLISECOND);
    workers[0].work(103 * MILLISECOND);
    assert!(workers.iter().all(|worker| !worker.is_connected()));
    assert_eq!(workers[0].next(103 * MILLISECOND), Some(151 * MILLISECOND));
}

/// A breaker that never opened, or only long ago, takes no room, but for the first that opened.
#[test]
fn record_size_is_bounded() {
    const WORD: usize = 8;
    let (data, mut workers) = gateway(1);
    let worker = &mut workers[0];
    let length = || data.get(KEY).unwrap().0.len();
    let answer = |worker: &mut Worker, gateways: u64, now| {
        worker.ask(1, now);
        worker.work(now);
        let (token, call) = worker.calls.one();
        let mut body = String::from_utf8(admits(&call)).unwrap();
        body = body.replacen(":2", &format!(":{gateways}"), 1);
        worker.answer(token, &ok(body.into_bytes()), now);
    };
    worker.fail(0);
    let closed = recover(worker, 0);
    for (gateways, later) in [(3, 10 * SECOND - 1), (4, 10 * SECOND), (5, 20 * SECOND)] {
        answer(worker, gateways, closed + later);
        assert_eq!(length(), (8 + 5) * WORD, "{later} later");
    }
}

#[test]
fn duplicate_shard_in_the_record_recovers() {
    let (data, mut workers) = gateway(2);
    workers[0].fail(0);
    let (mut record, _) = data.get(KEY).unwrap();
    let breaker = record[record.len() - 5 * 8..].to_vec();
    record.extend(breaker);
    data.set(KEY, &record);
    workers[1].ask(1, 0);
    assert!(run(&mut workers, 0, 2 * SECOND, |_| None).all.is_some());
}

/// Only records of existing shards are valid.
#[test]
fn unknown_shard_in_the_record_is_ignored() {
    let (data, mut workers) = gateway(1);
    workers[0].fail(0);
    let (mut record, _) = data.get(KEY).unwrap();
    let part = record.len() - 5 * 8;
    for (number, is_connected) in [(0, false), (1, true), (7, true)] {
        record[part] = number;
        data.set(KEY, &record);
        assert_eq!(Worker::of(&data).is_connected(), is_connected, "part {number}");
    }
}

/// Each line reports that this gateway lost or regained shards. Successive equal failures of shards
/// are logged once a second at most.
#[test]
fn failures_of_many_shards_are_logged_once_a_second() {
    let data = Rc::new(FakeSharedData::default());
    let mut worker = Worker::with_shards(&data, Shards::new(64));
    let mut proxy = Proxy::default();
    steps(&mut worker, &mut proxy, 0, 5);
    let mut fail = |parts: std::ops::Range<u64>, now| {
        let asks: Vec<_> = parts.rev().map(|part| charge(part << 58 | 1)).collect();
        proxy.away.extend(asks.iter().map(|ask| (ask.caller.second_hash >> 58) as usize));
        worker.ask_for(asks, now);
        steps(&mut worker, &mut proxy, now, 3);
        std::mem::take(&mut worker.client.log_lines)
    };
    let names = |lines: &[String]| {
        let of = |line: &String| line.split(" are unavailable").next().unwrap().to_owned();
        lines.iter().map(of).collect::<Vec<_>>()
    };
    let line = |first: u64, last: u64, more: &str| {
        let parts: Vec<String> = (first..=last).map(|part| part.to_string()).collect();
        let parts = parts.join(", ");
        vec![format!("global rules: shards {parts}{more} of 64 of Redis (cluster `redis`)")]
    };
    assert_eq!(names(&fail(1..17, SECOND)), line(1, 16, ""));
    // After a call for the secret and two attempts.
    let logged_at = SECOND + 2 * MILLISECOND;
    assert_eq!(names(&fail(17..20, logged_at + SECOND - 1 - MILLISECOND)), [""; 0]);
    assert_eq!(names(&fail(20..37, logged_at + SECOND - MILLISECOND)), line(20, 35, ", …"));
}

/// A probe queries one shard, and blocks as long as that does.
#[test]
fn at_most_16_probes_are_pending() {
    let data = Rc::new(FakeSharedData::default());
    let mut worker = Worker::with_shards(&data, Shards::new(64));
    let mut proxy = Proxy::default();
    steps(&mut worker, &mut proxy, 0, 5);
    proxy.away.extend(1..41);
    worker.ask_for((1..41).map(|part: u64| charge(part << 58 | 1)).collect(), SECOND);
    steps(&mut worker, &mut proxy, SECOND, 3);
    assert_eq!(worker.outbox.unavailable_shards(), 40);
    let due = worker.next(SECOND + 2 * MILLISECOND).unwrap();
    worker.work(due + MILLISECOND);
    assert_eq!(worker.calls.fresh().len(), 16);
    // No other work is due before one of them times out.
    let next = worker.next(due + MILLISECOND).unwrap();
    assert!(next > due + MILLISECOND + TIMEOUT, "{next}");
}
