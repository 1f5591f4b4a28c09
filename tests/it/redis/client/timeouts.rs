//! The wait for a reply, the size of batches, and their metrics.

use diana_policy::time::SECOND;
use diana_redis::protocol::{Charge, Script};
use diana_store::replies::QuestionResult;

use super::{MILLISECOND, TIMEOUT, Worker, charge, ok, requests};
use crate::support::redis::{Seen, no_script};

/// The time after its timeout when a call is abandoned.
const GRACE: u64 = 4 * MILLISECOND;

fn worker() -> Worker {
    Worker::after(1)
}

#[test]
fn late_question_is_not_sent() {
    for (waited, leaves) in [(TIMEOUT + GRACE - 1, true), (TIMEOUT + GRACE, false)] {
        let mut worker = worker();
        let ticket = worker.ask(1, SECOND);
        let results = requests(worker.work(SECOND + waited));
        assert_eq!(worker.calls.fresh().len(), usize::from(leaves), "after {waited}");
        assert_eq!(worker.is_connected(), leaves);
        assert_eq!(results.contains(&(ticket, QuestionResult::Degraded)), !leaves);
    }
}

#[test]
fn sendable_question_is_due_at_once() {
    let mut worker = worker();
    assert_eq!(worker.next(0), None);
    worker.ask(1, 0);
    assert_eq!(worker.next(1), Some(1));
    worker.work(0);
    let (token, _) = worker.calls.one();
    assert_eq!(worker.next(2), Some(TIMEOUT / 2));
    // The script must be sent with its text.
    let (body, now) = (no_script(), super::at(3));
    let (answer, calls) = (|| Some(body.clone()), worker.calls.clone());
    let answer = diana_policy::port::Answer {
        status: Some(200),
        size: body.len(),
        body: &answer,
        header: &|_| None,
    };
    assert!(worker.client.answer(token, &answer, now, &mut worker.outbox));
    assert!(calls.none());
    assert_eq!(worker.next(3), Some(3));
}

/// If Redis lacks the script after it was sent, it is not sent forever.
#[test]
fn script_text_is_sent_once() {
    let mut worker = worker();
    let ticket = worker.ask(1, 0);
    worker.work(0);
    let (token, call) = worker.calls.one();
    assert_eq!(Seen::of(&call).script, Script::Digest);
    assert!(requests(worker.answer(token, &ok(no_script()), 1).unwrap()).is_empty());
    let (token, call) = worker.calls.one();
    assert_eq!(Seen::of(&call).script, Script::Text);
    let results = worker.answer(token, &ok(no_script()), 2).unwrap();
    assert_eq!(requests(results), [(ticket, QuestionResult::Degraded)]);
    assert!(worker.calls.none() && !worker.is_connected());
}

#[test]
fn calls_and_foreign_values_are_counted() {
    let mut worker = worker();
    for round in 1..4 {
        let now = round * SECOND;
        worker.ask(1, now);
        worker.ask_for(vec![charge(2), charge(3)], now);
        worker.work(now);
        let (token, call) = worker.calls.one();
        // One reply per question: with one rule, and with two.
        let one = [0, 0, 9, 1, 0, 0, 0, 0, 0, 0];
        let body = crate::support::redis::decides(&[&[0][..], &one, &[0], &one, &one].concat());
        let body = String::from_utf8(body).unwrap().replacen(":0", ":5", 1);
        assert_eq!(Seen::of(&call).callers, [1, 2, 3]);
        let results = worker.answer(token, &ok(body.into_bytes()), now).unwrap();
        assert_eq!(requests(results).len(), 2);
        let stats = &worker.client.counts;
        assert_eq!((stats.calls, stats.asks, stats.corrupt), (1 + round, 1 + 2 * round, 5 * round));
    }
}

/// The shortest delay is valid for at least five seconds, and for ten at most.
#[test]
fn quickest_reply_expires() {
    let mut worker = worker();
    let mut ask = |now, takes| {
        worker.ask(1, now);
        worker.work(now);
        let (token, _) = worker.calls.one();
        let one = [0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0];
        let results =
            worker.answer(token, &ok(crate::support::redis::decides_at(now, &one)), now + takes);
        match requests(results.unwrap()).as_slice() {
            [(_, QuestionResult::Decided { at, .. })] => at - now,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ask(5 * SECOND, MILLISECOND), MILLISECOND);
    for tenths in 1..100 {
        assert_eq!(ask(5 * SECOND + tenths * SECOND / 10, 9 * MILLISECOND), MILLISECOND);
    }
    assert_eq!(ask(15 * SECOND, 9 * MILLISECOND), 9 * MILLISECOND);
}

/// A shadow rule may refuse a request that is admitted. Such a reply about any other rule is
/// malformed.
#[test]
fn refusal_without_a_rule_is_malformed() {
    let refused = |shadow, wait| {
        let mut worker = worker();
        worker.ask_for(vec![Charge { shadow, ..charge(1) }], 0);
        worker.work(0);
        let body = crate::support::redis::decides(&[wait, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        match requests(worker.lose(&ok(body), 1)).as_slice() {
            [(_, QuestionResult::Decided { wait, .. })] => Some(*wait),
            [(_, QuestionResult::Degraded)] => None,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(false, -1), Some(None));
    assert_eq!(refused(true, 0), Some(Some(0)));
    assert_eq!(refused(true, -1), None, "it is no answer");
}
