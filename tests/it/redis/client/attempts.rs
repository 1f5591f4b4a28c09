//! A lost call is sent again once, within the timeout of its questions. The mode changes only after
//! both attempts.

use std::rc::Rc;

use diana_policy::time::{Micros, SECOND};
use diana_redis::shard::Shards;
use diana_store::replies::QuestionResult;
use kit::fake::FakeSharedData;
use kit::model::proxy::Proxy;

use super::shards::steps;
use super::{MILLISECOND, Response, TIMEOUT, Worker, charge, ok, requests, reset, status};
use crate::support::redis::{Seen, admits};

/// Losses of calls that the host reports at once.
fn losses() -> [Response; 4] {
    [status(503), reset(), ok(b"<html>".into()), ok(b"-upstream failure\r\n+OK\r\n".into())]
}

#[test]
fn lost_call_is_sent_again_once_within_the_timeout() {
    for loss in losses() {
        for second_is_lost in [false, true] {
            let (mut worker, now) = (Worker::after(MILLISECOND), SECOND);
            let ticket = worker.ask(7, now);
            worker.work(now);
            let (token, first) = worker.calls.one();
            assert_eq!(first.timeout, TIMEOUT);
            let after = now + MILLISECOND;
            assert!(worker.answer(token, &loss, after).unwrap().is_empty(), "{loss:?}");
            assert!(worker.is_connected());
            let (token, second) = worker.calls.one();
            assert_eq!(second.timeout, now + TIMEOUT - after, "the rest");
            assert_eq!(second.body, first.body, "Redis decides it once");
            let (end, back) = match second_is_lost {
                true => (now + TIMEOUT, loss.clone()),
                false => (after + MILLISECOND, ok(admits(&second))),
            };
            let results = requests(worker.answer(token, &back, end).unwrap());
            assert!(worker.calls.none(), "there is no third attempt");
            assert_eq!(worker.is_connected(), !second_is_lost);
            let [(number, result)] = results[..] else { panic!("{results:?}") };
            assert_eq!((number, result == QuestionResult::Degraded), (ticket, second_is_lost));
        }
    }
}

/// Redis closes the connection of a client without the password when the script's text comes, so that Envoy may not read why.
#[test]
fn second_attempt_has_no_text() {
    let mut worker = Worker::of(&Rc::default());
    worker.ask(7, 0);
    worker.work(0);
    worker.answer(worker.calls.one().0, &reset(), 1);
    let (token, second) = worker.calls.one();
    assert!(second.body.len() < 1 << 10, "{} bytes", second.body.len());
    worker.answer(token, &ok(b"-WRONGPASS\r\n-NOAUTH\r\n+OK\r\n".into()), 2);
    let lines = worker.client.log_lines.join("\n");
    assert!(lines.contains("(WRONGPASS)"), "{lines}");
}

/// The host may not report a timeout.
#[test]
fn unreported_loss_fails_after_both_attempts() {
    let (mut worker, now) = (Worker::after(MILLISECOND), SECOND);
    let ticket = worker.ask(7, now);
    worker.work(now);
    worker.work(now + TIMEOUT / 2);
    assert_eq!(worker.calls.fresh().len(), 2);
    let due = worker.next(now + TIMEOUT / 2).unwrap();
    assert_eq!(due, now + TIMEOUT + 4 * MILLISECOND);
    assert_eq!(requests(worker.work(due)), [(ticket, QuestionResult::Degraded)]);
}

/// Where a reply takes more than half of the timeout, a second attempt would come too late.
#[test]
fn far_redis_is_asked_once() {
    for (round_trip, attempts) in [(TIMEOUT / 2, 2), (TIMEOUT / 2 + 1, 1)] {
        let mut worker = Worker::after(round_trip);
        worker.ask(7, SECOND);
        worker.work(SECOND);
        worker.work(SECOND + TIMEOUT / 2);
        assert_eq!(worker.calls.fresh().len(), attempts, "{round_trip}");
    }
    // Some slow replies, of a worker that was busy, change nothing.
    let (mut worker, mut now) = (Worker::after(MILLISECOND), SECOND);
    for number in 0..40 {
        worker.ask(7, now);
        worker.work(now);
        worker.work(now + TIMEOUT / 2);
        let calls = worker.calls.fresh();
        assert_eq!(calls.len(), 2, "{number}");
        let slow = if number % 4 == 0 { 15 * MILLISECOND } else { 11 * MILLISECOND };
        let (token, call) = &calls[usize::from(number % 4 > 0)];
        worker.answer(*token, &ok(admits(call)), now + slow).unwrap();
        now += 100 * MILLISECOND;
    }
    // After two attempts were too short, the time of a reply is unknown.
    worker.ask(7, now);
    worker.work(now);
    worker.lose(&status(503), now);
    now = worker.next(now).unwrap();
    worker.work(now);
    worker.work(now + TIMEOUT / 2);
    assert_eq!(worker.calls.fresh().len(), 1);
}

/// Where Redis is near but busy, late replies are not lost, and second attempts would make it slower. A late reply between quick ones,
/// and one that was lost, change nothing.
#[test]
fn busy_redis_gets_no_second_attempts() {
    let (mut worker, mut now) = (Worker::after(MILLISECOND), SECOND);
    let mut run = |calls: usize, takes: u64| {
        let mut second = 0;
        for _ in 0..calls {
            now += 100 * MILLISECOND;
            worker.ask(7, now);
            worker.work(now);
            let (token, call) = worker.calls.one();
            worker.work(now + takes.min(TIMEOUT / 2));
            second += worker.calls.fresh().len();
            worker.answer(token, &ok(admits(&call)), now + takes).unwrap();
            worker.work(now + SECOND / 20);
        }
        second
    };
    for _ in 0..3 {
        assert_eq!(run(1, 15 * MILLISECOND), 1);
        assert_eq!(run(1, MILLISECOND), 0);
    }
    assert_eq!(run(10, 15 * MILLISECOND), 2);
    assert_eq!(run(100, MILLISECOND), 0);
    assert_eq!(run(1, 15 * MILLISECOND), 1);
}

/// Of a gateway's workers one names the timeout that fits, once for each timeout.
#[test]
fn log_names_the_timeout_that_fits() {
    let data = Rc::new(FakeSharedData::default());
    let lines = |timeout: u64, trips: &[u64]| {
        let mut worker = Worker::with(&data, timeout * MILLISECOND);
        for (number, trip) in (1..).zip(trips) {
            worker.ask(7, number * SECOND);
            worker.work(number * SECOND);
            let (token, call) = worker.calls.fresh().remove(0);
            let now = number * SECOND + trip * MILLISECOND;
            worker.answer(token, &ok(admits(&call)), now).unwrap();
        }
        worker.client.log_lines
    };
    let none: [&str; 0] = [];
    assert_eq!(lines(500, &[250; 20]), none, "a lost call is sent again");
    assert_eq!(lines(500, &[[320; 9].as_slice(), &[9]].concat().repeat(3)), none, "only some");
    let line = "global rules: calls to Redis (cluster `redis`) take 320ms, and `timeout` is 500ms, too short to send a lost one again; \
                set `timeout` to 640ms or more";
    assert_eq!(lines(500, &[320; 30]), [line]);
    assert_eq!(lines(500, &[320; 30]), none, "another worker has logged it");
    let far = lines(1000, &[640; 30]);
    assert!(far.len() == 1 && far[0].contains("set `timeout` to 1s, the most"), "{far:?}");
}

/// How many milliseconds a second ask waits while the call of the first one is open.
fn pause(worker: &mut Worker, now: Micros) -> Option<u64> {
    worker.ask(7, now);
    worker.work(now);
    assert_eq!(worker.calls.fresh().len(), 1);
    worker.ask(8, now);
    (0..20).find(|wait| {
        worker.work(now + wait * MILLISECOND);
        worker.calls.fresh().iter().any(|(_, call)| Seen::of(call).callers == [8])
    })
}

/// Where Redis is near but busy, asks collect as before: with a call for each it would be slower.
#[test]
fn busy_redis_gets_no_more_calls() {
    for slow in [1, 4, 9, 15] {
        let (mut worker, now) = (Worker::after(MILLISECOND), SECOND);
        worker.ask(7, SECOND / 2);
        worker.work(SECOND / 2);
        let (token, call) = worker.calls.one();
        let late = SECOND / 2 + slow * MILLISECOND;
        worker.answer(token, &ok(admits(&call)), late).unwrap();
        assert_eq!(pause(&mut worker, now), Some(5), "{slow}");
    }
}

/// No ask waits for so long that a slow reply would come too late.
#[test]
fn far_redis_is_asked_soon() {
    for (round_trip, expected) in [(1, 5), (5, 5), (6, 4), (9, 1), (10, 0), (18, 0)] {
        let (mut worker, now) = (Worker::after(round_trip * MILLISECOND), SECOND);
        assert_eq!(pause(&mut worker, now), Some(expected), "{round_trip}");
    }
}

/// A proxy reports a shard that does not reply only after some time, and the others must not fail
/// with it. The lost call of that shard is sent again with the rest.
#[test]
fn proxy_gets_the_whole_timeout() {
    let data = Rc::new(FakeSharedData::default());
    let mut worker = Worker::with_shards(&data, Shards::new(16));
    let mut proxy = Proxy::default();
    let callers = || vec![charge(3 << 60 | 1), charge(5 << 60 | 1)];
    worker.ask_for(callers(), 0);
    steps(&mut worker, &mut proxy, 0, 6);
    let now = SECOND / 2;
    worker.ask_for(callers(), now);
    worker.work(now);
    let (token, first) = worker.calls.one();
    assert_eq!(first.timeout, TIMEOUT);
    proxy.away.insert(3);
    let later = now + 12 * MILLISECOND;
    worker.answer(token, &ok(proxy.answer(&first.body, 7 * SECOND)), later).unwrap();
    proxy.away.clear();
    let (token, second) = worker.calls.one();
    assert_eq!(second.timeout, 8 * MILLISECOND);
    assert_eq!(Seen::of(&second).callers, [3 << 60 | 1]);
    worker.answer(token, &ok(proxy.answer(&second.body, 8 * SECOND)), later).unwrap();
    assert!(worker.is_connected());
}
