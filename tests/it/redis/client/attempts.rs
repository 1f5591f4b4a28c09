//! A lost call is sent again once, within the timeout of its questions. The mode changes only after
//! both attempts.

use std::rc::Rc;

use diana_policy::port::Call;
use diana_policy::time::SECOND;
use diana_redis::outbox::Operation;
use diana_redis::protocol::{Charge, Effect, Refusals};
use diana_redis::results::QuestionResult;
use diana_redis::shard::{Shard, Shards};
use diana_store::backend::Receiver;
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::model::proxy::Proxy;

use super::shards::steps;
use super::{
    Completion, MILLISECOND, Response, TIMEOUT, Worker, charge, ok, requests, reset, status,
};
use crate::support::redis::{Seen, admits, decides};
use kit::seed;

/// A worker that has had a reply after this time.
fn worker(round_trip: u64) -> Worker {
    let mut worker = Worker::of(&Rc::new(FakeSharedData::default()));
    worker.ask(1, 0);
    worker.work(0);
    let (token, call) = worker.calls.one();
    worker.answer(token, &ok(admits(&call)), round_trip).unwrap();
    worker
}

/// Losses of calls: the host reports them at once, or when the call's own timeout ends.
fn losses() -> [(Response, bool); 5] {
    [
        (status(503), false),
        (reset(), false),
        (ok(b"<html>".into()), false),
        (ok(b"-upstream failure\r\n+OK\r\n".into()), false),
        (status(504), true),
    ]
}

#[test]
fn lost_call_is_sent_again_once_within_the_timeout() {
    for (loss, is_timeout) in losses() {
        for second_is_lost in [false, true] {
            let (mut worker, now) = (worker(MILLISECOND), SECOND);
            let ticket = worker.ask(7, now);
            worker.work(now);
            let (token, first) = worker.calls.one();
            assert_eq!(first.timeout, TIMEOUT / 2);
            let after = now + if is_timeout { first.timeout } else { MILLISECOND };
            assert!(worker.answer(token, &loss, after).unwrap().is_empty(), "{loss:?}");
            assert!(worker.is_connected());
            let (token, second) = worker.calls.one();
            assert_eq!(second.timeout, now + TIMEOUT - after, "the rest");
            assert_eq!(Seen::of(&second).callers, [7]);
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

/// The host may not report a timeout.
#[test]
fn unreported_loss_is_sent_again() {
    let (mut worker, now) = (worker(MILLISECOND), SECOND);
    worker.ask(7, now);
    worker.work(now);
    let (_, first) = worker.calls.one();
    let due = worker.next(now).unwrap();
    assert_eq!(due, now + first.timeout + 4 * MILLISECOND);
    assert!(worker.work(due).is_empty());
    let (token, second) = worker.calls.one();
    assert_eq!(second.timeout, now + TIMEOUT - due);
    assert_eq!(requests(worker.answer(token, &ok(admits(&second)), due + 1).unwrap()).len(), 1);
}

/// Where a reply takes more than a quarter of the timeout, half of it would be too short.
#[test]
fn far_redis_gets_the_whole_timeout() {
    for (round_trip, timeout) in [(TIMEOUT / 4, TIMEOUT / 2), (TIMEOUT / 4 + 1, TIMEOUT)] {
        let mut worker = worker(round_trip);
        worker.ask(7, SECOND);
        worker.work(SECOND);
        assert_eq!(worker.calls.one().1.timeout, timeout, "{round_trip}");
    }
    // Some slow replies, of a worker that was busy, change nothing.
    let (mut worker, mut now) = (worker(MILLISECOND), SECOND);
    for number in 0..40 {
        worker.ask(7, now);
        worker.work(now);
        let (token, call) = worker.calls.one();
        assert_eq!(call.timeout, TIMEOUT / 2, "{number}");
        let slow = if number % 4 == 0 { 9 * MILLISECOND } else { MILLISECOND };
        worker.answer(token, &ok(admits(&call)), now + slow).unwrap();
        now += 100 * MILLISECOND;
    }
    // After two attempts were too short, the time of a reply is unknown.
    worker.ask(7, now);
    worker.work(now);
    worker.lose(&status(503), now);
    now = worker.next(now).unwrap();
    worker.work(now);
    assert_eq!(worker.calls.one().1.timeout, TIMEOUT);
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

/// The callers of a call with settlements, whose last key is that of the ledger.
fn callers(call: &Call) -> Vec<u64> {
    let mut callers = Seen::of(call).callers;
    callers.pop();
    callers
}

/// Returns and refusals would count twice. Settlements are numbered, so that they do not.
#[test]
fn effects_that_must_not_happen_twice_are_not_sent_again() {
    let (mut worker, now) = (worker(MILLISECOND), SECOND);
    let effect = |effect| Charge { cost: 0, effect, ..charge(20) };
    let cost = effect(Effect::ReturnCost { receipt: 4, term: 0, permits: 1 });
    let block = effect(Effect::ReturnBlock { receipt: 4, term: 0, block: 5, left: 1 });
    worker.outbox.ledgers.add(Shard::FIRST, Charge { caller: charge(10).caller, ..cost.clone() });
    worker.send(Operation::Return(cost));
    worker.send(Operation::Return(block));
    let ban = |caller, refusals, sets| {
        let Charge { fingerprint, caller, numbers, keys, .. } = charge(caller);
        Operation::Ban(
            0,
            Refusals { fingerprint, caller, numbers, refusals, keys, sets, shadow: false },
        )
    };
    worker.send(ban(30, 2, None));
    worker.send(ban(31, 0, None));
    worker.send(ban(32, 0, Some(SECOND)));
    worker.send(Operation::Renew(0, 0, Charge { cost: 0, want: 9, ..charge(40) }));
    worker.ask(50, now);
    worker.work(now);
    let (token, first) = worker.calls.one();
    assert_eq!(callers(&first), [10, 20, 20, 30, 31, 32, 40, 50]);
    let results = worker.answer(token, &status(503), now).unwrap();
    let failed = |completion: &Completion| match *completion {
        (Receiver::Bans(0, caller), QuestionResult::Degraded) => caller.hash,
        other => panic!("{other:?}"),
    };
    assert_eq!(results.iter().map(failed).collect::<Vec<_>>(), [30]);
    let (token, second) = worker.calls.one();
    assert_eq!(callers(&second), [10, 31, 32, 40, 50]);
    let one = [0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0];
    let body = decides(&one.repeat(5));
    assert_eq!(worker.answer(token, &ok(body), now).unwrap().len(), 4);
    assert!(!worker.outbox.ledgers.is_any(), "its numbered part is settled");
}

/// One call of a hundred is lost, before or after Redis, at 500 calls a second: on average one
/// request of a hundred is decided in degraded mode, in a single minute sometimes three.
#[test]
fn few_lost_calls_rarely_change_the_mode() {
    let seed = seed::next();
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let mut workers =
        [(); 2].map(|()| Rc::new(FakeSharedData::default())).map(|it| Worker::of(&it));
    let mut coming: Vec<(u64, usize, u32, Response)> = Vec::new();
    let (mut degraded, mut asked) = (0, 0);
    for now in (0..900 * SECOND).step_by(MILLISECOND as usize) {
        for (number, worker) in workers.iter_mut().enumerate() {
            let mut results = Vec::new();
            while let Some(place) = coming.iter().position(|it| it.0 <= now && it.1 == number) {
                let (_, _, token, back) = coming.swap_remove(place);
                results.extend(worker.answer(token, &back, now).unwrap_or_default());
            }
            if now.is_multiple_of(2 * MILLISECOND) {
                worker.ask(rng.u64(1..1000), now);
                asked += 1;
            }
            results.extend(worker.work(now));
            let is_degraded =
                |(_, result): &(u64, QuestionResult)| *result == QuestionResult::Degraded;
            degraded += requests(results).iter().filter(|it| is_degraded(it)).count();
            for (token, call) in worker.calls.fresh() {
                let (after, back) = match rng.u8(..100) {
                    0 => (call.timeout, status(504)),
                    _ => (MILLISECOND, ok(admits(&call))),
                };
                coming.push((now + after, number, token, back));
            }
        }
    }
    assert!(degraded * 50 <= asked, "{degraded} of {asked}");
}
