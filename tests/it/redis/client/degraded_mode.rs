//! A gateway in degraded mode.

use std::rc::Rc;

use diana_policy::time::SECOND;
use diana_redis::protocol::Failure;
use diana_store::replies::QuestionResult;
use kit::fake::FakeSharedData;

use super::{MILLISECOND, TIMEOUT, Worker, ok, requests, reset, status};
use crate::support::redis::{admits, decides};

fn worker() -> Worker {
    Worker::of(&Rc::new(FakeSharedData::default()))
}

#[test]
fn missing_cluster_is_a_failure() {
    let mut worker = worker();
    worker.calls.fake.refusal.set(Some("Envoy has no such cluster"));
    let tickets: Vec<u64> = (0..1000).map(|caller| worker.ask(caller, 0)).collect();
    let mut results = Vec::new();
    for now in 0..3 {
        results.extend(requests(worker.work(now * MILLISECOND)));
    }
    assert_eq!(
        results,
        tickets.into_iter().map(|ticket| (ticket, QuestionResult::Degraded)).collect::<Vec<_>>()
    );
    assert!(worker.client.log_lines[0].contains("no such cluster"));
    assert_eq!(worker.client.log_lines.len(), 1);
    worker.calls.fake.refusal.set(None);
    for now in (0..2 * SECOND).step_by(MILLISECOND as usize) {
        worker.work(now);
        for (token, call) in worker.calls.fresh() {
            worker.answer(token, &ok(admits(&call)), now);
        }
    }
    assert!(worker.is_connected());
}

#[test]
fn failures_have_names_and_are_counted() {
    let many = vec![b':'; 1 << 20];
    for (response, name) in [
        (status(503), "unreachable"),
        (status(504), "timeout"),
        (status(500), "garbage"),
        (status(0), "garbage"),
        (reset(), "reset"),
        (ok(Vec::new()), "reset"),
        (ok(many), "garbage"),
        (ok(decides(&[0; 10])), "garbage"),
        (ok(decides(&[0; 13])), "garbage"),
        (ok(decides(&[0, 0, 0, -5, 0, 0, 0, 0, 0, 0, 0])), "garbage"),
        // A refusal that names no rule.
        (ok(decides(&[-1, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0])), "garbage"),
        (ok(b"-MOVED 1 a:1\r\n+OK\r\n".into()), "moved"),
        (ok(b"-READONLY You can't\r\n+OK\r\n".into()), "readonly"),
        (ok(b"-WRONGPASS\r\n-NOAUTH\r\n+OK\r\n".into()), "wrongpass"),
    ] {
        let mut worker = worker();
        let ticket = worker.ask(1, 0);
        worker.work(0);
        let results = worker.lose(&response, 1);
        assert_eq!(requests(results), [(ticket, QuestionResult::Degraded)], "{name}");
        let is_lost = ["unreachable", "timeout", "garbage", "reset"].contains(&name);
        let calls = if is_lost { 2 } else { 1 };
        assert_eq!(worker.client.counts.calls, calls, "only a lost call is sent again");
        let named: Vec<_> = worker.client.counts.failures.iter().collect();
        assert_eq!(named, [&(name, calls)], "{:.80}", format!("{response:?}"));
        assert_eq!(worker.client.counts.changes, 1);
    }
    assert_eq!(Failure::Timeout.name(), "timeout");
}

/// The host's timer may expire some milliseconds before the timeout, and is then reported as a
/// reset.
#[test]
fn late_reset_is_a_timeout() {
    for (now, name) in [(TIMEOUT / 4 - 1, "reset"), (TIMEOUT / 4, "timeout")] {
        let mut worker = worker();
        worker.ask(1, 0);
        worker.work(0);
        let (token, _) = worker.calls.one();
        worker.answer(token, &reset(), now).unwrap();
        let named: Vec<_> = worker.client.counts.failures.iter().collect();
        assert_eq!(named, [&(name, 1)], "after {now} µs");
    }
}

/// Metrics may not be read for days.
#[test]
fn long_outage_takes_bounded_memory() {
    let mut worker = worker();
    worker.fail(0);
    for now in (0..3600 * SECOND).step_by(50_000) {
        worker.work(now);
        for (token, _) in worker.calls.fresh() {
            worker.answer(token, &status(503), now);
        }
    }
    assert!(worker.client.counts.failures.len() <= 20);
    assert!(worker.client.log_lines.len() <= 16);
}
