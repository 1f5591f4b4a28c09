//! What a worker knows of a caller by what Redis said, and when it asks for more.

use diana_core::bloom::Shape;
use diana_core::decision::Decision;
use diana_core::policy::Quota;
use diana_core::redis::protocol::Charge;
use diana_core::store::CounterSpec;
use diana_core::time::{SECOND, Unit};
use kit::store::TakeOfFleet;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;

use super::desk::{Desk, lends, refuses};
use super::fleet::away;
use super::office::MS;

#[test]
fn what_was_lent_is_spent_once() {
    let mut desk = Desk::new("TB", 1000);
    desk.ask(1, 0);
    desk.hear(&lends(10), 0, 0);
    assert_eq!(desk.store.left(key(1)), Some(510));
    // Nothing comes back of what nobody took.
    let mut untaken = desk.check(0);
    desk.store.undo(&mut untaken);
    assert_eq!(desk.store.left(key(1)), Some(510));
    for taken in 1..=10 {
        assert!(desk.store.take(key(1), 1, START, &mut desk.handle).is_none());
        assert_eq!(desk.store.left(key(1)), Some(510 - taken));
    }
    assert!(desk.check(0).asks());
    let late = desk.store.charge(&mut untaken, 0, &mut desk.handle);
    assert_eq!(late, Decision::retry(1), "others have spent it");
}

/// What has to be asked is not charged before that.
#[test]
fn a_question_charges_nothing_and_says_who_asks() {
    let mut desk = Desk::new("TB", 1000);
    let mut asked = desk.check(0);
    assert!(asked.asks());
    assert_eq!(desk.store.charge(&mut asked, 0, &mut desk.handle), Decision::retry(1));
    assert!(!asked.is_charged());
    assert!(desk.store.take(key(1), 1, START, &mut desk.handle).is_some_and(|it| it.asks()));
    for (shadow, tentative) in [(false, false), (false, true), (true, false), (true, true)] {
        let Charge { cost, shadow: is_shadow, tentative: is_tentative, .. } =
            desk.store.question((key(1), 1), START, shadow, tentative);
        assert_eq!((cost, is_shadow, is_tentative), (1, shadow, tentative));
    }
}

/// Only what was let through counts towards the gateway's part of the limit.
#[test]
fn a_refusal_is_noted_nowhere_but_here() {
    let mut desk = Desk::new("W", 1000);
    desk.ask(1, 0);
    desk.hear(&refuses(MS, 0), 0, 0);
    assert_eq!(desk.data.writes.get(), 0);
    desk.hear(&lends(10), 2 * MS, 2 * MS);
    assert!(desk.data.writes.get() > 0);
}

/// A worker knows nothing of single accounts of a daily quota that are admitted.
#[test]
fn an_account_of_a_daily_quota_takes_no_line() {
    let rule = Rule::new("W", Quota::new(Unit::Day, 10));
    let daily = Some(Shape::new(1000, 10_000, 10));
    let mut desk = Desk::of(CounterSpec { daily, ..rule.spec(100) });
    desk.hear(&lends(0), 0, 0);
    assert_eq!(desk.store.left(key(1)), None);
    desk.hear(&refuses(SECOND, 0), 0, 0);
    assert_eq!(desk.store.left(key(1)), Some(0));
}

/// So that they do not wait for the first of them that comes when the next slice begins: where that is near, the caller
/// comes often, and no others hold what is missing.
#[test]
fn permits_of_the_next_slice_are_asked_for_ahead() {
    for (requests, retry, loan, asks) in
        [(25, 15 * MS, 0, 1), (25, 15 * MS + 1, 0, 0), (25, 10 * MS, 5 * MS, 0), (5, 10 * MS, 0, 0)]
    {
        let mut desk = Desk::new("SW", 1000);
        desk.ask(requests, 0);
        desk.store.wait(key(1), 3);
        desk.hear(&refuses(retry, loan), 0, 0);
        let told = desk.check(0);
        assert_eq!(told.decision(), Decision::retry(retry));
        assert_eq!(desk.renewals(), asks, "{requests} requests, {retry} ticks, {loan}");
    }
}

/// A caller that is pressed waits for what is asked for once for all of its requests, unless too many wait already: then
/// it is told how long permits gather.
#[test]
fn a_crowd_is_told_when_to_come_back_where_permits_gather() {
    // It is the length of a request's refill, and no less than permits gather.
    for (short, rpu, crowded, loan, retry) in [
        ("TB", 1000, false, 20 * MS, 20 * MS),
        ("TB", 1000, true, 0, 10 * MS),
        ("TB", 30, true, 0, 33_334),
        ("SW", 1000, true, 20 * MS, 20 * MS),
        ("SW", 1000, false, 20 * MS, 20 * MS),
    ] {
        let mut desk = Desk::new(short, rpu);
        desk.ask(25, 0);
        desk.hear(&refuses(MS, 0), 0, 0);
        if crowded {
            desk.store.crowd(key(1), START);
        }
        // The refusal is over, and so is the pause after it.
        let told = desk.check(12 * MS);
        assert_eq!(
            (told.loan(), told.decision()),
            (loan, Decision::retry(retry)),
            "{short} {crowded}"
        );
        assert_eq!(desk.renewals(), 1);
        assert_eq!(desk.check(12 * MS).loan(), loan);
        assert_eq!(desk.renewals(), 0, "once for all");
    }
}

/// What gathers is not asked for before it has.
#[test]
fn while_permits_gather_nothing_is_asked() {
    let mut desk = Desk::new("TB", 1000);
    desk.ask(25, 0);
    // The answer took so long that the next question could leave.
    desk.hear(&refuses(MS, 0), 0, 8 * MS);
    let told = desk.check(12 * MS);
    assert_eq!((told.loan(), desk.renewals()), (6 * MS, 0));
    let told = desk.check(18 * MS);
    assert_eq!((told.loan(), desk.renewals()), (20 * MS, 1));
}

#[test]
fn who_looks_again_asks() {
    let mut desk = Desk::new("W", 1000);
    desk.ask(1, 0);
    desk.hear(&refuses(500 * MS, 10 * MS), 0, 0);
    assert!(!desk.check(MS).asks());
    desk.store.look_again(key(1));
    assert!(desk.check(MS).asks());
}

/// Of what Redis lent, and of what the gateway's part did.
#[test]
fn there_is_more_to_do_as_long_as_anything_is_lent() {
    let is_busy = |of_redis: bool, of_gateway: bool| {
        let mut desk = Desk::new("TB", 1000);
        if of_redis {
            desk.ask(1, 0);
            desk.hear(&lends(10), 0, 0);
        }
        let mut alone = away();
        for _ in 0..if of_gateway { 40 } else { 0 } {
            assert!(desk.store.take(key(2), 1, START, &mut alone).is_none());
        }
        desk.store.tidy(START, &mut alone)
    };
    for (of_redis, of_gateway) in [(false, false), (true, false), (false, true), (true, true)] {
        assert_eq!(is_busy(of_redis, of_gateway), of_redis || of_gateway);
    }
}

/// As long as there are as many gateways, the same part is gone by.
#[test]
fn a_gateway_that_is_alone_leases_from_its_part() {
    let mut desk = Desk::new("TB", 10_000);
    let mut alone = away();
    for _ in 0..40 {
        assert!(desk.store.take(key(2), 1, START, &mut alone).is_none());
    }
    let writes = desk.data.writes.get();
    assert!((0..20).all(|_| desk.store.take(key(2), 1, START, &mut alone).is_none()));
    assert_eq!(desk.data.writes.get(), writes);
}
