//! What a worker does with what Redis said of a caller, and with what comes back.

use diana_core::bloom::Shape;
use diana_core::decision::Decision;
use diana_core::policy::Quota;
use diana_core::policy::redis::OnFailure;
use diana_core::redis::handle::Operation;
use diana_core::redis::protocol::{Back, Charge, RuleReply};
use diana_core::store::CounterSpec;
use diana_core::time::{SECOND, Unit};
use kit::store::TakeOfFleet;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;

use super::desk::{Desk, lends, refuses};
use super::fleet::away;
use super::office::MS;

fn daily() -> CounterSpec {
    let daily = Some(Shape::new(1000, 10_000, 10));
    CounterSpec { daily, ..Rule::new("W", Quota::new(Unit::Day, 10)).spec(100) }
}

/// What is given back: of whom, and what.
fn back(desk: &mut Desk) -> Vec<(u64, Back)> {
    let all = desk.handle.take(usize::MAX);
    let gives = |it: &Operation| match it {
        Operation::GiveBack(Charge { caller, back, .. }) => (caller.hash, *back),
        other => panic!("{other:?}"),
    };
    all.iter().map(gives).collect()
}

fn block(block: u64, left: u64) -> Back {
    Back::Block { receipt: 5, term: 4, block, left }
}

/// What is lent for later is the caller's, too.
#[test]
fn a_block_of_the_next_slice_counts_as_left_and_follows_the_one_in_hand() {
    let mut desk = Desk::new("SW", 1000);
    desk.ask(1, 0);
    desk.hear(&lends(4), 0, 0);
    desk.hear(&RuleReply { starts: 50 * MS, ..lends(3) }, 0, 0);
    assert_eq!(desk.store.left(key(1)), Some(507));
    desk.hear(&refuses(SECOND, 0), 0, 0);
    let take = |desk: &mut Desk, after: u64| {
        desk.store.take(key(1), 1, START.later(after), &mut desk.handle).is_none()
    };
    assert!((0..4).all(|_| take(&mut desk, 49 * MS)));
    assert!(!take(&mut desk, 50 * MS - 1), "it was refused");
    assert!((0..3).all(|_| take(&mut desk, 50 * MS)));
    assert!(desk.check(50 * MS).asks(), "it was refused before the slice began");
}

/// The caller asked again while its answer was on its way.
#[test]
fn an_answer_that_lends_nothing_takes_no_block_away() {
    for lent in [1, 2, 10] {
        let mut desk = Desk::new("W", 1000);
        desk.ask(1, 0);
        desk.hear(&lends(lent), 0, 0);
        desk.hear(&lends(0), 0, 0);
        assert_eq!(desk.store.left(key(1)), Some(500 + lent));
        assert_eq!(back(&mut desk), []);
        assert!((0..lent).all(|_| desk.store.take(key(1), 1, START, &mut desk.handle).is_none()));
    }
}

/// Where there is one line two callers may want it at once.
#[test]
fn a_block_for_which_there_is_no_line_any_more_goes_back() {
    for starts in [0, 50 * MS] {
        let mut desk = Desk::of(Rule::new("SW", Quota::new(Unit::Second, 1000)).spec(1));
        for caller in [1, 2] {
            desk.store.question((key(caller), 1), START, false, false);
        }
        desk.hear(&lends(10), 0, 0);
        let late = RuleReply { starts, ..lends(7) };
        desk.store.receive(key(2), &late, (1, 1), (START, START), &mut desk.handle);
        assert_eq!(back(&mut desk), [(key(2).hash, block(7, 7))], "{starts}");
        assert_eq!(desk.store.left(key(1)), Some(510));
    }
}

/// However soon after it was lent: nothing has to gather for who was not refused.
#[test]
fn a_block_that_runs_low_is_renewed_at_once() {
    let mut desk = Desk::new("TB", 1000);
    desk.ask(40, 0);
    desk.hear(&lends(10), 0, MS);
    let take = |desk: &mut Desk| {
        desk.store.take(key(1), 1, START.later(2 * MS), &mut desk.handle).is_none()
    };
    assert!((0..4).all(|_| take(&mut desk)));
    assert_eq!(desk.renewals(), 0);
    assert!(take(&mut desk));
    assert_eq!(desk.renewals(), 1);
    assert!(take(&mut desk));
    assert_eq!(desk.renewals(), 0, "it is on its way");
}

#[test]
fn what_redis_refused_says_nothing_of_the_part_of_a_gateway_that_is_cut_off() {
    let mut desk = Desk::new("W", 1000);
    desk.ask(40, 0);
    desk.hear(&refuses(SECOND, 0), 0, 0);
    assert!(!desk.check(1).asks());
    desk.handle = away();
    for after in [1, 200 * MS] {
        assert!(desk.store.take(key(1), 1, START.later(after), &mut desk.handle).is_none());
    }
}

#[test]
fn who_looks_again_asks_though_it_comes_often() {
    let mut desk = Desk::new("W", 1000);
    desk.ask(40, 0);
    desk.hear(&refuses(500 * MS, 10 * MS), 0, 0);
    assert!(!desk.check(MS).asks());
    desk.store.look_again(key(1));
    assert!(desk.check(MS).asks());
}

#[test]
fn a_refusal_is_forgotten_when_it_is_lifted_and_when_its_store_ends() {
    let mut desk = Desk::new("W", 1000);
    let forget: [fn(&mut Desk); 2] = [
        |desk| desk.store.forget_refusal(key(1)),
        |desk| _ = desk.store.close(START, &mut desk.handle),
    ];
    for forget in forget {
        desk.ask(1, 0);
        desk.hear(&refuses(SECOND, 0), 0, 0);
        assert!(!desk.check(1).asks());
        forget(&mut desk);
        assert!(desk.check(1).asks());
    }
}

/// Others hold what is missing for as long as Redis said, but those who wait look again fifty times a second, all at once.
#[test]
fn a_loan_runs_out_and_is_remembered_until_those_who_wait_look_again() {
    for (heard, loan, until) in [
        (0, 15 * MS, 15 * MS),
        (0, 20 * MS, 20 * MS),
        (0, 90 * MS, 20 * MS),
        (13 * MS, 90 * MS, 20 * MS),
        (13 * MS, 5 * MS, 18 * MS),
        (20 * MS - 1, 90 * MS, 20 * MS),
        (20 * MS, 90 * MS, 40 * MS),
    ] {
        let mut desk = Desk::new("W", 1000);
        desk.ask(1, 0);
        desk.hear(&refuses(SECOND, loan), 0, heard);
        for after in [heard, until - 1] {
            let told = desk.check(after);
            let age = after - heard;
            assert_eq!(told.decision(), Decision::retry(SECOND - age), "{heard} {loan}");
            assert_eq!(told.loan(), loan - age);
        }
        assert!(desk.check(until).asks(), "{heard} {loan}");
    }
}

#[test]
fn what_leaves_before_its_turn_is_given_back_to_redis_unless_nobody_can_tell_it() {
    let rule = || Rule::new("LB", Quota::new(Unit::Second, 1000)).spec(100);
    let cost = Back::Cost { receipt: 9, term: 0, permits: 3 };
    for (spec, wanted) in [
        (rule(), vec![(key(1).hash, cost)]),
        (CounterSpec { checks: true, ..rule() }, vec![]),
        (daily(), vec![]),
    ] {
        let mut desk = Desk::of(spec);
        desk.store.leave(key(1), 9, 3, START, &mut desk.handle);
        assert_eq!(back(&mut desk), wanted);
    }
}

/// Whatever was let through without being counted.
#[test]
fn what_nobody_counted_adds_nothing_to_a_block_when_it_is_undone() {
    let mut desk = Desk::new("W", 1000);
    desk.ask(1, 0);
    desk.hear(&lends(10), 0, 0);
    assert!(desk.store.take(key(1), 1, START, &mut desk.handle).is_none());
    desk.handle = away();
    desk.handle.on_failure = OnFailure::Allow;
    let now = START.later(SECOND);
    let mut free = desk.store.check(key(1), 1, now, &mut desk.handle);
    assert!(desk.store.charge(&mut free, 0, &mut desk.handle).is_admitted());
    desk.store.undo(&mut free);
    desk.store.close(now, &mut desk.handle);
    assert_eq!(back(&mut desk), [(key(1).hash, block(10, 9))]);
}

/// Of an account that shares counters with one that was charged meanwhile.
#[test]
fn an_account_that_was_judged_anew_is_still_the_gateways_own() {
    let mut desk = Desk::of(daily());
    desk.handle = away();
    let mut first = desk.check(0);
    let mut second = desk.store.check(key(2), 1, START, &mut desk.handle);
    for reservation in [&mut second, &mut first] {
        assert!(desk.store.charge(reservation, 0, &mut desk.handle).is_admitted());
        assert_eq!(desk.store.remaining(reservation), Some(9));
    }
}

#[test]
fn what_redis_decides_has_no_renewal_of_its_own() {
    let mut desk = Desk::new("W", 1000);
    let asked = desk.check(0);
    assert_eq!(desk.store.renewal(&asked), None);
    let asked = desk.store.take(key(1), 1, START, &mut desk.handle);
    assert_eq!(asked.map(|it| it.decision()), Some(Decision::NOW), "nobody has decided yet");
}

/// Each account by itself, on the day on which that was.
#[test]
fn what_redis_let_through_of_a_quota_counts_on_its_day_once_redis_is_away() {
    let mut desk = Desk::of(daily());
    desk.hear(&lends(0), 0, 0);
    for after in [0, 24 * 3600 * SECOND] {
        let now = START.later(after);
        for _ in 0..4 {
            desk.store.receive(key(1), &lends(0), (1, 1), (now, now), &mut desk.handle);
        }
        let mut alone = away();
        for (caller, left) in [(1, 6), (2, 10)] {
            let admitted =
                (0..20).filter(|_| desk.store.take(key(caller), 1, now, &mut alone).is_none());
            assert_eq!(admitted.count(), left, "{after}");
        }
    }
}
