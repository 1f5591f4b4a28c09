//! How a gateway that is alone finds the way back.

use std::rc::Rc;

use diana_core::key::Seed;
use diana_core::time::SECOND;
use kit::fake::FakeSharedData;

use super::breaker::gateway;
use super::redis::{Seen, admits, no_script, other_seed};
use super::{MILLISECOND, TIMEOUT, Worker, ok, reset, status};

#[test]
fn a_probe_that_learns_the_secret_is_a_good_answer() {
    let (_, mut workers) = gateway(1);
    workers[0].fail(0);
    let theirs = Seed { k0: 8, k1: 9 };
    let mut sent = Vec::new();
    for now in (0..3 * SECOND).step_by(MILLISECOND as usize) {
        workers[0].work(now);
        for (token, call) in workers[0].calls.fresh() {
            sent.push(now);
            let own = Seen::of(&call).seed == format!("{:016x}{:016x}", theirs.k0, theirs.k1);
            let answer = if own { admits(&call) } else { other_seed(theirs) };
            workers[0].answer(token, &ok(answer), now).unwrap();
        }
        if workers[0].is_together() {
            break;
        }
    }
    assert!(workers[0].is_together());
    assert!(sent[sent.len() - 1] - sent[0] <= SECOND / 10, "{sent:?}");
}

#[test]
fn a_probe_that_finds_redis_without_the_script_brings_it_there() {
    let (_, mut workers) = gateway(1);
    workers[0].fail(0);
    for now in (0..3 * SECOND).step_by(MILLISECOND as usize) {
        workers[0].work(now);
        for (token, call) in workers[0].calls.fresh() {
            let is_text = Seen::of(&call).script == diana_core::redis::protocol::Script::Text;
            let answer = if is_text { admits(&call) } else { no_script() };
            workers[0].answer(token, &ok(answer), now).unwrap();
        }
    }
    assert!(workers[0].is_together());
}

#[test]
fn what_was_sent_before_redis_was_back_does_not_count_any_more() {
    let data = Rc::new(FakeSharedData::default());
    let mut worker = Worker::with(&data, SECOND);
    worker.ask(1, 0);
    worker.work(0);
    let (old, _) = worker.calls.one();
    worker.ask(2, SECOND / 4);
    worker.work(SECOND / 2);
    let (first, _) = worker.calls.one();
    worker.answer(first, &reset(), SECOND / 2).unwrap();
    let mut stuck = Vec::new();
    for now in (SECOND / 2..SECOND).step_by(MILLISECOND as usize) {
        worker.work(now);
        for (token, call) in worker.calls.fresh() {
            if stuck.is_empty() {
                stuck.push(token);
            } else {
                worker.answer(token, &ok(admits(&call)), now).unwrap();
            }
        }
    }
    assert!(worker.is_together());
    for token in [old, stuck[0]] {
        worker.answer(token, &status(504), SECOND).unwrap();
        assert!(worker.is_together());
    }
}

#[test]
fn of_workers_that_want_to_probe_at_the_same_time_one_does() {
    let (data, mut workers) = gateway(2);
    workers.iter_mut().for_each(|worker| {
        worker.ask(1, 0);
        worker.work(0);
        worker.calls.fresh();
    });
    let due = TIMEOUT + 10 * MILLISECOND;
    workers.iter_mut().for_each(|worker| drop(worker.work(due)));
    let due = due + SECOND / 10;
    let other = Rc::new(std::cell::RefCell::new(workers.remove(1)));
    let faster = other.clone();
    *data.before_swap.borrow_mut() = Some(Box::new(move |_, _| {
        if let Ok(mut faster) = faster.try_borrow_mut() {
            faster.work(due);
        }
    }));
    workers[0].work(due);
    data.before_swap.borrow_mut().take();
    assert_eq!(other.borrow().calls.fresh().len(), 1);
    assert!(workers[0].calls.none());
}

#[test]
fn a_worker_that_was_never_asked_never_probes() {
    let (_, mut workers) = gateway(2);
    workers[0].fail(0);
    for now in (0..5 * SECOND).step_by(MILLISECOND as usize) {
        workers[1].work(now);
    }
    assert!(workers[1].calls.none());
    assert_eq!(workers[1].next(5 * SECOND), None, "nor does it have a timer");
}
