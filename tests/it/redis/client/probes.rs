//! Probes of a gateway in degraded mode.

use std::rc::Rc;

use diana_policy::port::SharedData;
use diana_policy::time::SECOND;
use kit::fake::FakeSharedData;

use super::breaker::{KEY, gateway};
use super::{MILLISECOND, TIMEOUT, Worker, ok, reset, status};
use crate::support::redis::admits;

#[test]
fn reply_to_a_call_before_recovery_is_ignored() {
    let data = Rc::new(FakeSharedData::default());
    let mut worker = Worker::with(&data, SECOND);
    worker.ask(1, 0);
    worker.work(0);
    let (old, _) = worker.calls.one();
    worker.ask(2, SECOND / 4);
    worker.work(SECOND / 2);
    worker.lose(&reset(), SECOND / 2);
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
    assert!(worker.is_connected());
    for token in [old, stuck[0]] {
        worker.answer(token, &status(504), SECOND).unwrap();
        assert!(worker.is_connected());
    }
}

#[test]
fn only_one_worker_probes_at_a_time() {
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

/// A damaged pause could make all workers probe at once, or none for long.
#[test]
fn damaged_pause_keeps_probes_on_time() {
    for (pause, next) in [(0, 100), (99_999, 100), (300_000, 300), (u64::MAX, 900)] {
        let (data, mut workers) = gateway(2);
        workers[0].fail(0);
        let (mut record, _) = data.get(KEY).unwrap();
        // After the number of the shard and the time of the next probe.
        record[10 * 8..][..8].copy_from_slice(&u64::to_le_bytes(pause));
        data.set(KEY, &record);
        workers[1].ask(1, 0);
        workers[1].work(100 * MILLISECOND);
        assert_eq!(workers[1].calls.fresh().len(), 1, "it probes");
        workers[0].work(100 * MILLISECOND);
        assert!(workers[0].calls.none(), "one at a time");
        let due = (100 + next) * MILLISECOND;
        assert_eq!(workers[0].next(100 * MILLISECOND), Some(due), "after {pause}");
    }
}

/// A closing time in the future is damaged, since no failure is older than that.
#[test]
fn failure_is_recorded_over_a_damaged_record() {
    for since in [SECOND, SECOND + 1, u64::MAX] {
        let (data, mut workers) = gateway(1);
        let worker = &mut workers[0];
        worker.fail(0);
        let (mut record, _) = data.get(KEY).unwrap();
        record[9 * 8..].fill(0);
        record[12 * 8..][..8].copy_from_slice(&u64::to_le_bytes(since));
        data.set(KEY, &record);
        worker.work(SECOND);
        assert!(worker.is_connected(), "it is closed");
        worker.calls.fresh();
        worker.ask(1, SECOND);
        worker.work(SECOND);
        worker.lose(&status(503), SECOND);
        assert!(!worker.is_connected(), "closed at {since}");
    }
}

/// Only the first of many failures is recorded, except those of probes.
#[test]
fn known_failure_is_not_written_again() {
    let (data, mut workers) = gateway(2);
    for worker in &mut workers {
        worker.ask(1, 0);
        worker.work(0);
    }
    let version = || data.get(KEY).unwrap().1;
    let before = version();
    workers[0].lose(&status(503), MILLISECOND);
    let after = version();
    assert_ne!(after, before);
    let results = workers[1].lose(&status(503), MILLISECOND);
    assert_eq!(version(), after);
    assert_eq!(results.len(), 1, "it is not asked again");
}
