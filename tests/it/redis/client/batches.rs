//! The content and the rate of batches.

use std::rc::Rc;

use diana_policy::key::Seed;
use diana_redis::outbox::Operation;
use diana_redis::protocol::{Charge, Effect, Script};
use diana_store::backend::Receiver;
use diana_store::replies::QuestionResult;
use kit::fake::FakeSharedData;

use super::{MILLISECOND, OWN, TIMEOUT, Worker, charge, ok, requests, status};
use crate::support::redis::{Seen, admits, no_script, other_seed};

fn worker() -> Worker {
    Worker::after(1)
}

fn back(caller: u64) -> Charge {
    Charge {
        cost: 0,
        effect: Effect::ReturnCost { receipt: 4, term: 0, permits: 1 },
        ..charge(caller)
    }
}

fn more(caller: u64) -> Charge {
    Charge { cost: 0, want: 100, ..charge(caller) }
}

#[test]
fn questions_gather_while_a_batch_is_pending() {
    let mut worker = worker();
    worker.ask(1, 0);
    worker.work(0);
    let (token, first) = worker.calls.one();
    assert_eq!(Seen::of(&first).callers, [1]);
    assert_eq!(first.timeout, TIMEOUT);
    for caller in 2..50 {
        worker.ask(caller, MILLISECOND);
        worker.work(MILLISECOND);
    }
    assert!(worker.calls.none());
    let results = worker.answer(token, &ok(admits(&first)), 2 * MILLISECOND).unwrap();
    assert_eq!(requests(results).len(), 1);
    let (_, second) = worker.calls.one();
    assert_eq!(Seen::of(&second).callers, (2..50).collect::<Vec<_>>());
    assert_eq!(second.timeout, TIMEOUT - MILLISECOND, "they have waited already");
}

#[test]
fn at_most_four_batches_are_pending() {
    let mut worker = worker();
    let mut bodies = Vec::new();
    for now in (0..TIMEOUT).step_by(MILLISECOND as usize) {
        for _ in 0..300 {
            worker.ask(now, now);
        }
        worker.work(now);
        bodies.extend(worker.calls.fresh().into_iter().map(|(_, call)| call.body));
    }
    assert_eq!(bodies.len(), 8, "each of them is sent twice");
    bodies.sort_unstable();
    bodies.dedup();
    assert_eq!(bodies.len(), 4);
}

#[test]
fn batch_length_is_bounded() {
    for rules in [1, 3, 40] {
        let mut worker = worker();
        for _ in 0..1000 {
            worker.ask_for(vec![charge(1); rules], 0);
        }
        worker.work(0);
        for (_, call) in worker.calls.fresh() {
            let charges = Seen::of(&call).callers.len();
            assert!(charges <= 256 + rules, "{charges} in a trip");
            assert!(charges >= 200, "{charges} in a trip");
        }
    }
}

#[test]
fn operations_leave_with_the_next_batch() {
    let mut worker = worker();
    for caller in 0..1000 {
        worker.send(Operation::Renew(0, 0, more(10_000 + caller)));
    }
    let (mut brought, mut calls) = (0, Vec::new());
    for now in (0..TIMEOUT).step_by(MILLISECOND as usize) {
        (0..1200).for_each(|caller| _ = worker.ask(caller, now));
        for (token, call) in std::mem::take(&mut calls) {
            let results = worker.answer(token, &ok(admits(&call)), now).unwrap();
            brought += results.iter().filter(|it| !matches!(it.0, Receiver::Request(_))).count();
        }
        worker.work(now);
        calls = worker.calls.fresh();
    }
    assert_eq!(brought, 1000, "requests push errands aside");
}

/// For any number of operations, most of a batch is questions of waiting requests.
#[test]
fn operations_leave_room_for_requests() {
    let mut worker = worker();
    (0..1000).for_each(|caller| worker.send(Operation::Renew(0, 0, more(10_000 + caller))));
    (0..1000).for_each(|caller| _ = worker.ask(caller, 0));
    worker.work(0);
    for (_, call) in worker.calls.fresh() {
        let callers = Seen::of(&call).callers;
        let requests = callers.iter().filter(|caller| **caller < 10_000).count();
        assert!(requests >= 150, "{requests} of {}", callers.len());
    }
}

#[test]
fn operations_leave_without_requests() {
    let mut worker = worker();
    assert_eq!(worker.next(0), None);
    worker.send(Operation::Renew(3, 0, more(1)));
    worker.send(Operation::Return(back(2)));
    assert_eq!(worker.next(5), Some(5));
    worker.work(5);
    let (token, call) = worker.calls.one();
    assert_eq!(Seen::of(&call).callers, [1, 2]);
    let results = worker.answer(token, &ok(admits(&call)), 6).unwrap();
    assert_eq!(results.len(), 1, "{results:?}");
    assert!(
        matches!(results[0], (Receiver::Store(3, account), QuestionResult::Decided { .. }) if account.key.hash == 1),
        "{results:?}"
    );
    assert_eq!(worker.next(7), None);
}

#[test]
fn return_is_resent_only_if_nothing_was_executed() {
    let mut worker = worker();
    worker.outbox.in_use = false;
    worker.send(Operation::Return(back(1)));
    worker.send(Operation::Renew(0, 0, more(2)));
    worker.work(0);
    let (token, call) = worker.calls.one();
    assert!(worker.answer(token, &ok(no_script()), 1).unwrap().is_empty());
    let (token, again) = worker.calls.one();
    let seen = Seen::of(&again);
    assert_eq!((seen.script, seen.callers), (Script::Text, Seen::of(&call).callers));
    // It is unknown whether this was executed.
    let results = worker.answer(token, &status(504), TIMEOUT).unwrap();
    let is_lost = matches!(results[..], [(Receiver::Store(0, _), QuestionResult::Degraded)]);
    assert!(is_lost, "{results:?}");
    for now in 0..3000 {
        worker.work(TIMEOUT + now * MILLISECOND);
        for (token, call) in worker.calls.fresh() {
            assert_eq!(Seen::of(&call).callers, [0; 0]);
            worker.answer(token, &ok(admits(&call)), TIMEOUT + now * MILLISECOND);
        }
    }
}

#[test]
fn pending_operations_are_bounded() {
    let mut worker = worker();
    worker.ask(1, 0);
    worker.work(0);
    let (token, call) = worker.calls.one();
    // While a reply is pending, for any number of operations.
    (0..100_000).for_each(|caller| worker.send(Operation::Return(back(caller))));
    let results = worker.answer(token, &ok(admits(&call)), MILLISECOND).unwrap();
    assert_eq!(results.len(), 1);
    let mut sent = 0;
    for now in (MILLISECOND..100 * MILLISECOND).step_by(MILLISECOND as usize) {
        worker.work(now);
        for (token, call) in worker.calls.fresh() {
            sent += Seen::of(&call).callers.len();
            worker.answer(token, &ok(admits(&call)), now);
        }
    }
    assert!(sent <= 20_000, "{sent}");
    // While the gateway is in degraded mode.
    worker.fail(TIMEOUT * 100);
    (0..1000).for_each(|caller| worker.send(Operation::Renew(0, 0, more(caller))));
    let results = worker.work(TIMEOUT * 100);
    assert_eq!(results.len(), 1000);
    assert!(!worker.outbox.has_operations());
}

#[test]
fn new_secret_repeats_only_questions_of_the_old_one() {
    let mut worker = worker();
    let theirs = Seed { k0: 8, k1: 9 };
    // Two batches with the old secret.
    let first = worker.ask(1, 0);
    worker.work(0);
    let second = worker.ask(2, 0);
    worker.work(TIMEOUT / 4);
    let calls = worker.calls.fresh();
    assert_eq!(calls.len(), 2);
    let third = worker.ask(3, TIMEOUT / 4);
    worker.send(Operation::Renew(0, 0, more(1)));
    let results = worker.answer(calls[0].0, &ok(other_seed(theirs)), TIMEOUT / 4 + 1).unwrap();
    let again = |ticket| (ticket, QuestionResult::Repeat);
    assert_eq!(results.len(), 3);
    assert_eq!(requests(results), [again(first), again(third)]);
    assert!(worker.client.seed() == theirs);
    // Asked again under the new secret, and this waits for the pending batch.
    worker.ask(1, TIMEOUT / 4 + 2);
    worker.send(Operation::Renew(0, 0, more(1)));
    let results = worker.answer(calls[1].0, &ok(other_seed(theirs)), TIMEOUT / 4 + 3).unwrap();
    assert_eq!(requests(results), [again(second)]);
    let (_, call) = worker.calls.one();
    assert_eq!(Seen::of(&call).callers, [1, 1], "they are hashed under the new one");
    assert_ne!(OWN.k0, theirs.k0);
}

#[test]
fn request_of_an_ended_root_is_checked_again() {
    let mut worker = Worker::of(&Rc::new(FakeSharedData::default()));
    let ticket = worker.ask(1, 0);
    worker.work(0);
    let (token, call) = worker.calls.one();
    assert!(worker.on_root_ended(9).is_empty(), "somebody else has ended");
    assert_eq!(requests(worker.on_root_ended(0)), [(ticket, QuestionResult::Repeat)]);
    assert_eq!(worker.answer(token, &ok(admits(&call)), 1), None);
    assert_eq!(worker.client.counts.failures, [("lost", 1)]);
    assert!(worker.is_connected(), "Redis is not to blame");
}
