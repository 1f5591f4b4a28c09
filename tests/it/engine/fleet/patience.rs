//! Requests that wait for permits which Redis has lent to others, until they have waited as long as they may.

use diana_core::port::{Call, Request, Values};
use diana_core::time::SECOND;
use kit::fake::FakeRequest;
use kit::model::wire::{Asking, commands};

use super::super::field;
use super::{MILLISECOND, Worker, ann, opinion};
use crate::fleet::redis::decides;

const RULE: &str = "actor: account, unit: day, rpu: 9, algo: W, scope: global";

/// How long a request waits, and what that ends at a multiple of.
const LONGEST: u64 = SECOND / 5;
const GRID: u64 = 5 * MILLISECOND;

const ADMITS: [i64; 11] = [0, 0, 0, 5, 1, 7, 0, 0, 0, 0, 0];

/// It comes back in an hour, but others have it for another tenth of a second.
const LENT: [i64; 11] = [-1, 3_600_000_000, 100_000, 0, 0, 0, 0, 0, 0, 0, 0];

/// A worker that begins so many milliseconds after an instant at which all that waits is looked at.
fn worker(offset: u64, late: u64) -> Worker {
    let mut worker = Worker::new(RULE);
    let now = worker.clock.0.get();
    let grid = 20 * MILLISECOND;
    worker.clock.0.set(now.later(grid - now.mono % grid + offset * MILLISECOND));
    worker.late = late;
    worker
}

/// When a request has waited as long as it may that was refused at an instant.
fn end(refused: u64) -> u64 {
    (refused + LONGEST) / GRID * GRID
}

/// What it is told then is when others may have given something back.
#[test]
fn who_has_waited_as_long_as_it_may_is_decided_about_by_the_next_answer() {
    let mut seen = 0;
    for (offset, late) in (0..20).flat_map(|offset| (0..15).map(move |late| (offset, late))) {
        let mut worker = worker(offset, late);
        worker.request(&ann());
        let refused = worker.clock.0.get().mono + (1 + late) * MILLISECOND;
        let end = end(refused);
        while worker.verdicts.is_empty() {
            let before = worker.coming.len();
            let sent = worker.called;
            worker.step(&mut |_, _| Some(decides(&LENT)));
            let now = worker.clock.0.get().mono;
            let answered = worker.coming.len() + sent < before + worker.called;
            if answered && now >= end {
                assert_eq!(worker.verdicts, [false], "{offset}, {late}: at {now}, not {end}");
                seen += usize::from(now == end);
            }
            assert!(now <= end + 25 * MILLISECOND);
        }
        assert_eq!(field(&worker.refused, "retry-after"), Some("1"));
    }
    assert!(seen > 10, "{seen} were answered just then");
}

/// Others may give something back at the last moment.
#[test]
fn who_has_waited_as_long_as_it_may_is_asked_about_once_more() {
    for offset in 0..20 {
        let mut worker = worker(offset, 0);
        worker.request(&ann());
        let end = end(worker.clock.0.get().mono + MILLISECOND);
        while worker.verdicts.is_empty() {
            let is_back = worker.clock.0.get().mono + MILLISECOND >= end;
            worker.step(&mut |_, _| Some(decides(if is_back { &ADMITS } else { &LENT })));
        }
        assert_eq!(worker.verdicts, [true], "{offset}");
    }
}

/// What is answered to one request may be news for those that wait.
#[test]
fn who_waits_is_asked_about_when_another_one_was_admitted() {
    for (second, again) in [(ADMITS, true), (LENT, false)] {
        let mut worker = worker(1, 0);
        (0..2).for_each(|_| worker.request(&ann()));
        worker.step(&mut |_, _| Some(decides(&[LENT, second].concat())));
        let asked = worker.called;
        worker.steps(2, &mut |_, _| Some(decides(&LENT)));
        assert_eq!(worker.called > asked, again);
    }
}

/// How many questions each ask of a call has, and what their first ones take.
fn asks(call: &Call) -> Vec<(usize, u64)> {
    let words = commands(&call.body);
    let mut asking = Asking::read(&words[0]);
    let mut all = Vec::new();
    while let Some((questions, _)) = asking.ask() {
        let costs: Vec<u64> = (0..questions).map(|_| asking.rule(0, 0).1.cost).collect();
        all.push((questions, costs[0]));
    }
    all
}

/// Those who come while it is asked about once more wait no longer than it has.
#[test]
fn whoever_waits_does_not_give_way_to_those_who_come_later() {
    const MOST: usize = 64;
    for late in [0, 3, 10, 17] {
        let mut worker = worker(1, late);
        let mut lent = |call: &Call, _| Some(decides(&LENT.repeat(asks(call).len())));
        let numbered = |number: usize| ann().header("x-number", number.to_string());
        (0..MOST).for_each(|number| worker.request(&numbered(number)));
        for number in MOST..MOST + 150 {
            worker.step(&mut lent);
            worker.request(&numbered(number));
        }
        let waits = |number: &usize| {
            let name = number.to_string();
            let is_it =
                |request: &FakeRequest| request.header("x-number") == Values::One(name.as_bytes());
            worker.waiting.values().any(is_it)
        };
        assert_eq!((0..MOST).filter(waits).count(), MOST, "{late}");
        assert!(!worker.verdicts.is_empty(), "others came in vain");
    }
}

/// There is room for so many callers who wait, and again once they do no more.
#[test]
fn as_many_callers_as_ever_may_wait_after_others_have() {
    const CALLERS: usize = 1024;
    let mut worker = worker(1, 0);
    let mut lent = |call: &Call, _| Some(decides(&LENT.repeat(asks(call).len())));
    for round in 0..4 {
        for caller in 0..CALLERS {
            let caller = format!("{round} {caller}");
            worker.request(&FakeRequest::get("/").header("x-account-id", caller));
        }
        worker.steps(50, &mut lent);
        assert_eq!(worker.verdicts, [false; 0], "all of them wait");
        assert_eq!(worker.waiting.len(), CALLERS);
        let leave = round % 2 == 0;
        if leave {
            worker.waiting.drain().for_each(|(ticket, _)| worker.engine.forget(ticket));
        }
        worker.steps(300, &mut lent);
        assert_eq!(worker.verdicts.len(), if leave { 0 } else { CALLERS });
        worker.verdicts.clear();
    }
}

/// It is the others who have what it needs, so that it is refused for nothing that it did.
#[test]
fn who_has_waited_in_vain_is_not_banned_for_it() {
    let mut worker = Worker::new(&format!("{RULE}, ban: {{after: 1, within: 10s, for: 1m}}"));
    worker.request(&ann());
    let mut told = 0;
    worker.steps(300, &mut |call, _| {
        let mut numbers = Vec::new();
        for (questions, cost) in asks(call) {
            told += if questions == 1 { cost } else { 0 };
            numbers.extend(if questions == 1 { &[0][..] } else { &LENT });
            numbers.extend(opinion(0, 0, 0));
        }
        Some(decides(&numbers))
    });
    assert_eq!((worker.verdicts, told), (vec![false], 0));
}
