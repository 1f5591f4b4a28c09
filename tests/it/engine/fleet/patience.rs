//! Requests that wait for permits which Redis has lent to others, until they have waited as long as they may.

use diana_core::time::SECOND;

use super::super::field;
use super::{MILLISECOND, Worker, ann};
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
