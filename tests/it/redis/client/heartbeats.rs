//! The heartbeat of a gateway, and the number of gateways that it assumes.

use std::rc::Rc;

use diana_policy::time::SECOND;
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::model::redis::Redis;

use super::breaker::{KEY, gateway};
use super::{MILLISECOND, Worker, ok, status};
use crate::support::redis::{Seen, admits, decides};
use kit::seed;

const EPOCH: u64 = 1_700_000_000 * SECOND;

/// Workers of one gateway that have rules, and no requests.
fn idle(workers: usize) -> Vec<Worker> {
    let (_, mut workers) = gateway(workers);
    workers.iter_mut().for_each(|worker| worker.outbox.beats = true);
    workers
}

/// Lets all workers work for some time. `reach` returns true if a call of a worker reaches Redis.
/// Returns when each worker called it.
fn run(
    workers: &mut [Worker],
    redis: &mut Redis,
    (from, until): (u64, u64),
    reach: impl Fn(u64, usize) -> bool,
) -> Vec<(u64, usize)> {
    let mut calls = Vec::new();
    for now in (from..until).step_by(MILLISECOND as usize) {
        for (number, worker) in workers.iter_mut().enumerate() {
            if worker.next(now).is_none_or(|next| next > now) {
                continue;
            }
            worker.work(now);
            let mut fresh = worker.calls.fresh();
            while let Some((token, call)) = fresh.pop() {
                calls.push((now, number));
                let back = match reach(now, number) {
                    true => ok(redis.answer(&call.body, EPOCH + now)),
                    false => status(503),
                };
                worker.answer(token, &back, now).unwrap();
                fresh.extend(worker.calls.fresh());
            }
        }
    }
    calls
}

#[test]
fn one_worker_tells_that_its_gateway_is_alive() {
    let (mut workers, mut redis) = (idle(4), Redis::default());
    let calls = run(&mut workers, &mut redis, (0, 10 * SECOND), |_, _| true);
    let times: Vec<u64> = calls.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, (0..10).map(|second| second * SECOND).collect::<Vec<_>>());
    // A call for requests replaces a heartbeat that is due soon.
    workers[3].ask(1, 10 * SECOND - MILLISECOND);
    let calls =
        run(&mut workers, &mut redis, (10 * SECOND - MILLISECOND, 12 * SECOND), |_, _| true);
    assert_eq!(calls.iter().filter(|(_, number)| *number == 3).count(), 1, "{calls:?}");
    assert_eq!(calls.len(), 2, "{calls:?}");
}

/// A push reaches all gateways at once. Redis, which has one processor, must not get all their
/// heartbeats at once in each second that follows.
#[test]
fn gateways_that_start_together_take_turns() {
    const GATEWAYS: u64 = 250;
    let (mut rng, mut redis) = (Rng::with_seed(seed::next()), Redis::default());
    let mut fleet: Vec<Worker> = (0..GATEWAYS)
        .map(|number| {
            let data = Rc::new(FakeSharedData::default());
            let number = rng.u64(1..1 << 40) * SECOND + number * SECOND / GATEWAYS;
            data.set(KEY, [number, 0, 0, 0, 0, 0, 0, 0].map(u64::to_le_bytes).as_flattened());
            let mut worker = Worker::of(&data);
            worker.outbox.beats = true;
            worker
        })
        .collect();
    let calls = run(&mut fleet, &mut redis, (7 * SECOND, 11 * SECOND), |_, _| true);
    let (first, later): (Vec<_>, Vec<_>) = calls.iter().partition(|(at, _)| *at == 7 * SECOND);
    assert_eq!(first.len() as u64, GATEWAYS, "each is known at once");
    for from in (7 * SECOND + 1..11 * SECOND).step_by(20 * MILLISECOND as usize) {
        let span = from..from + 20 * MILLISECOND;
        let calls = later.iter().filter(|(at, _)| span.contains(at)).count();
        assert!(calls <= 6, "{calls} from {from}");
    }
    for gateway in 0..fleet.len() {
        let own = calls.iter().filter(|(_, number)| *number == gateway);
        let times: Vec<u64> = own.map(|(at, _)| *at).collect();
        let longest = times.windows(2).map(|two| two[1] - two[0]).max();
        assert!(longest <= Some(SECOND), "{times:?}");
    }
}

/// It may be that of Envoy's main thread.
#[test]
fn worker_without_requests_that_cannot_reach_redis_opens_no_breaker() {
    let (mut workers, mut redis) = (idle(3), Redis::default());
    let calls = run(&mut workers, &mut redis, (0, 30 * SECOND), |_, number| number > 0);
    assert!(workers.iter().all(Worker::is_connected));
    assert!(workers.iter().all(|worker| worker.client.log_lines.is_empty()));
    assert!(workers[0].client.counts.failures.is_empty());
    let failed = calls.iter().filter(|(_, number)| *number == 0).count();
    assert!((2..=14).contains(&failed), "{failed}");
    let good: Vec<u64> =
        calls.iter().filter(|(_, number)| *number > 0).map(|(at, _)| *at).collect();
    let longest = good.windows(2).map(|two| two[1] - two[0]).max().unwrap();
    assert!(longest <= 2 * SECOND, "another one takes over: {longest}");
    // Nobody reaches it: they all try again later.
    let calls = run(&mut workers, &mut redis, (30 * SECOND, 60 * SECOND), |_, _| false);
    assert!(workers.iter().all(Worker::is_connected));
    assert!((3 * 4 * 2..=3 * 7 * 2).contains(&calls.len()), "{}", calls.len());
    // With requests the failure counts.
    workers[1].ask(1, 60 * SECOND);
    run(&mut workers, &mut redis, (60 * SECOND, 61 * SECOND), |_, _| false);
    assert!(!workers[1].is_connected());
}

/// A gateway whose rules have ended is not counted any more.
#[test]
fn ended_rules_send_no_heartbeat() {
    let (mut workers, mut redis) = (idle(1), Redis::default());
    run(&mut workers, &mut redis, (0, 2 * SECOND), |_, _| true);
    workers[0].outbox.beats = false;
    assert_eq!(workers[0].next(2 * SECOND), None);
    assert!(run(&mut workers, &mut redis, (2 * SECOND, 9 * SECOND), |_, _| true).is_empty());
}

/// Five gateways, each with one login in seven seconds, know all of them.
#[test]
fn quiet_gateways_know_each_other() {
    let mut redis = Redis::default();
    let mut fleet: Vec<Worker> = (0..5).flat_map(|_| idle(1)).collect();
    run(&mut fleet, &mut redis, (0, 20 * SECOND), |_, _| true);
    assert!(fleet.iter().all(|worker| worker.outbox.gateways == 5));
}

/// A worker that gets this number at these times, or no answer.
fn counted(worker: &mut Worker, now: u64, gateways: Option<u64>) -> u64 {
    worker.outbox.beats = true;
    worker.work(now);
    let mut fresh = worker.calls.fresh();
    while let Some((token, call)) = fresh.pop() {
        let body = String::from_utf8(match Seen::of(&call).callers.is_empty() {
            true => decides(&[]),
            false => admits(&call),
        });
        let back = match gateways {
            Some(gateways) => {
                ok(body.unwrap().replacen(":2\r\n", &format!(":{gateways}\r\n"), 1).into())
            }
            None => status(503),
        };
        worker.answer(token, &back, now).unwrap();
        fresh.extend(worker.calls.fresh());
    }
    worker.outbox.gateways
}

#[test]
fn number_of_gateways_falls_late() {
    let data = Rc::new(FakeSharedData::default());
    let mut worker = Worker::of(&data);
    let mut now = SECOND;
    let mut next = |worker: &mut Worker, gateways| {
        now += SECOND;
        counted(worker, now, gateways)
    };
    assert_eq!(worker.outbox.gateways, 1);
    assert_eq!(next(&mut worker, Some(5)), 5, "it grows at once");
    for _ in 0..5 {
        assert_eq!(next(&mut worker, Some(1)), 5);
    }
    assert_eq!(next(&mut worker, Some(1)), 1, "after five seconds");
    assert_eq!(next(&mut worker, Some(6)), 6);
    // A failure, or as many as before, starts the time again.
    for other in [None, Some(6)] {
        for _ in 0..4 {
            assert_eq!(next(&mut worker, Some(2)), 6);
        }
        assert_eq!(next(&mut worker, other), 6);
    }
    // A later configuration remembers it.
    for _ in 0..3 {
        worker = Worker::of(&data);
        assert_eq!(worker.outbox.gateways, 6);
        assert_eq!(next(&mut worker, Some(4)), 6);
    }
    for _ in 0..2 {
        assert_eq!(next(&mut worker, Some(4)), 6);
    }
    assert_eq!(next(&mut worker, Some(4)), 4);
}

#[test]
fn configured_number_of_gateways_counts_before_the_first_reply() {
    let mut worker = Worker::with_gateways(40);
    assert_eq!(worker.outbox.gateways, 40);
    assert_eq!(counted(&mut worker, SECOND, None), 40);
    let mut now = 10 * SECOND;
    assert_eq!(counted(&mut worker, now, Some(50)), 50);
    let mut worker = Worker::with_gateways(40);
    for _ in 0..5 {
        now += SECOND;
        assert_eq!(counted(&mut worker, now, Some(3)), 40);
    }
    assert_eq!(counted(&mut worker, now + SECOND, Some(3)), 3);
}

/// Any history of reports and failures: the number is at least that of the last report, and at
/// least the largest of the five seconds before, or since the last failure.
#[test]
fn number_of_gateways_is_never_too_small() {
    for seed in (0..100).map(|number| seed::next().wrapping_add(number)) {
        println!("seed {seed}");
        let mut rng = Rng::with_seed(seed);
        let mut worker = Worker::of(&Rc::new(FakeSharedData::default()));
        let mut reports: Vec<(u64, Option<u64>)> = Vec::new();
        let mut now = SECOND;
        for _ in 0..100 {
            now += SECOND + rng.u64(..3) * SECOND / 2;
            let report = (rng.u8(..10) > 0).then(|| rng.u64(1..10));
            let before = worker.calls.fake.sent.borrow().len();
            let assumed = counted(&mut worker, now, report);
            if worker.calls.fake.sent.borrow().len() > before {
                reports.push((now, report));
            }
            let since =
                reports.iter().rev().take_while(|(at, it)| it.is_some() && *at + 5 * SECOND > now);
            let most = since.filter_map(|(_, it)| *it).max().unwrap_or(1);
            assert!(assumed >= most, "{assumed} of {reports:?}");
        }
    }
}

/// A time in the future is damaged, and must not silence the gateway once it has requests.
#[test]
fn damaged_heartbeat_recovers() {
    let (data, mut workers) = gateway(1);
    workers[0].outbox.beats = true;
    workers[0].ask(1, SECOND);
    let mut redis = Redis::default();
    run(&mut workers, &mut redis, (SECOND, 2 * SECOND), |_, _| true);
    let (mut record, _) = diana_policy::port::SharedData::get(&*data, KEY).unwrap();
    record[5 * 8..][..8].copy_from_slice(&u64::MAX.to_le_bytes());
    data.set(KEY, &record);
    workers[0].ask(1, 2 * SECOND);
    let calls = run(&mut workers, &mut redis, (2 * SECOND, 5 * SECOND), |_, _| true);
    assert_eq!(calls.len(), 3, "{calls:?}");
}
