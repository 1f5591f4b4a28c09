//! A worker's handling of Redis's replies and of returned permits.

use diana_policy::Quota;
use diana_policy::bloom::Shape;
use diana_policy::decision::Decision;
use diana_policy::redis::OnFailure;
use diana_policy::time::{SECOND, Unit};
use diana_redis::handle::Operation;
use diana_redis::protocol::{Charge, Effect};
use diana_store::{CounterSpec, Store};
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::{Take, left};

use super::desk::{Desk, lends, refuses};
use super::fleet::away;
use super::office::MS;

fn daily() -> CounterSpec {
    let daily = Some(Shape::new(1000, 10_000, 10));
    CounterSpec { daily, ..Rule::new("W", Quota::new(Unit::Day, 10)).spec(100) }
}

/// Returns by caller.
fn back(desk: &mut Desk) -> Vec<(u64, Effect)> {
    let all = desk.handle.borrow_mut().take(usize::MAX);
    let gives = |it: &Operation| match it {
        Operation::Return(Charge { caller, effect: back, .. }) => (caller.hash, *back),
        other => panic!("{other:?}"),
    };
    all.iter().map(gives).collect()
}

fn block(block: u64, left: u64) -> Effect {
    Effect::ReturnBlock { receipt: 5, term: 4, block, left }
}

/// The caller sent another request while the reply was pending.
#[test]
fn reply_without_a_lease_keeps_the_lease() {
    for lent in [1, 2, 10] {
        let mut desk = Desk::new("W", 1000);
        desk.ask(1, 0);
        desk.hear(&lends(lent), 0, 0);
        desk.hear(&lends(0), 0, 0);
        assert_eq!(desk.store.left(key(1)), Some(500 + lent));
        assert_eq!(back(&mut desk), []);
        assert!((0..lent).all(|_| desk.store.take(key(1), 1, START).is_none()));
    }
}

/// Two callers may need the same line at once.
#[test]
fn lease_without_a_cache_slot_is_returned() {
    let mut desk = Desk::of(Rule::new("SW", Quota::new(Unit::Second, 1000)).spec(1));
    for caller in [1, 2] {
        desk.store.question((key(caller), 1), START, false, false);
    }
    desk.hear(&lends(10), 0, 0);
    desk.store.receive(key(2), &lends(7), (1, 1), (START, START));
    assert_eq!(back(&mut desk), [(key(2).hash, block(7, 7))]);
    assert_eq!(desk.store.left(key(1)), Some(510));
}

#[test]
fn refusal_of_redis_does_not_apply_in_degraded_mode() {
    let mut desk = Desk::new("W", 1000);
    desk.ask(40, 0);
    desk.hear(&refuses(SECOND, false), 0, 0);
    assert!(!desk.check(1).is_pending());
    desk.handle.replace(away());
    for after in [1, 200 * MS] {
        assert!(desk.store.take(key(1), 1, START.later(after)).is_none());
    }
}

#[test]
fn reset_and_close_drop_a_cached_refusal() {
    let mut desk = Desk::new("W", 1000);
    let forget: [fn(&mut Desk); 2] = [|desk| desk.reset(), |desk| _ = desk.store.close(START)];
    for forget in forget {
        desk.ask(1, 0);
        desk.hear(&refuses(SECOND, false), 0, 0);
        assert!(!desk.check(1).is_pending());
        forget(&mut desk);
        assert!(desk.check(1).is_pending());
    }
}

#[test]
fn request_that_leaves_early_returns_its_position_to_redis() {
    let mut desk = Desk::of(Rule::new("LB", Quota::new(Unit::Second, 1000)).spec(100));
    assert!(desk.store.settle(&left(key(1), 9, 3), START));
    let sent = desk.handle.borrow_mut().ledgers.take(&[], START.mono);
    let [(.., charges)] = &sent[..] else { panic!("{} batches", sent.len()) };
    assert_eq!(charges[0].effect, Effect::ReturnCost { receipt: 9, term: 0, permits: 3 });
}

/// Permits that were granted without being counted.
#[test]
fn cancelled_uncounted_permit_adds_nothing_to_a_lease() {
    let mut desk = Desk::new("W", 1000);
    desk.ask(1, 0);
    desk.hear(&lends(10), 0, 0);
    assert!(desk.store.take(key(1), 1, START).is_none());
    desk.handle.replace(away());
    desk.handle.borrow_mut().on_failure = OnFailure::Allow;
    let now = START.later(SECOND);
    let mut free = desk.store.checked(key(1).into(), 1, now);
    assert!(desk.store.charge(&mut free, 0).is_admitted());
    desk.store.cancel(&mut free);
    desk.store.close(now);
    assert_eq!(back(&mut desk), [(key(1).hash, block(10, 9))]);
}

/// The account shares counters with one that was charged in the meantime.
#[test]
fn repeated_check_stays_with_the_gateway() {
    let mut desk = Desk::of(daily());
    desk.handle.replace(away());
    let mut first = desk.check(0);
    let mut second = desk.store.checked(key(2).into(), 1, START);
    for reservation in [&mut second, &mut first] {
        assert!(desk.store.charge(reservation, 0).is_admitted());
        assert_eq!(desk.store.remaining(reservation).map(|it| it.permits), Some(9));
    }
}

#[test]
fn rule_of_redis_has_no_local_balance() {
    let mut desk = Desk::new("W", 1000);
    let asked = desk.check(0);
    assert_eq!(desk.store.remaining(&asked), None);
    let asked = desk.store.take(key(1), 1, START);
    assert_eq!(asked.map(|it| it.decision), Some(Decision::NOW), "nobody has decided yet");
}

/// Each account separately, on the day of its charges.
#[test]
fn daily_admissions_by_redis_count_in_degraded_mode() {
    let mut desk = Desk::of(daily());
    desk.hear(&lends(0), 0, 0);
    for after in [0, 24 * 3600 * SECOND] {
        let now = START.later(after);
        for _ in 0..4 {
            desk.store.receive(key(1), &lends(0), (1, 1), (now, now));
        }
        desk.handle.replace(away());
        for (caller, left) in [(1, 6), (2, 10)] {
            let admitted = (0..20).filter(|_| desk.store.take(key(caller), 1, now).is_none());
            assert_eq!(admitted.count(), left, "{after}");
        }
    }
}

#[test]
fn lease_is_spent_once() {
    let mut desk = Desk::new("TB", 1000);
    desk.ask(1, 0);
    desk.hear(&lends(10), 0, 0);
    assert_eq!(desk.store.left(key(1)), Some(510));
    // A dropped check returns no permits.
    let mut untaken = desk.check(0);
    desk.store.cancel(&mut untaken);
    assert_eq!(desk.store.left(key(1)), Some(510));
    for taken in 1..=10 {
        assert!(desk.store.take(key(1), 1, START).is_none());
        assert_eq!(desk.store.left(key(1)), Some(510 - taken));
    }
    assert!(desk.check(0).is_pending());
    let late = desk.store.charge(&mut untaken, 0);
    assert_eq!(late, Decision::retry(1), "others have spent it");
}

#[test]
fn question_charges_nothing() {
    let mut desk = Desk::new("TB", 1000);
    let mut asked = desk.check(0);
    assert!(asked.is_pending());
    assert_eq!(desk.store.charge(&mut asked, 0), Decision::retry(1));
    assert!(!asked.is_charged);
    assert!(desk.store.take(key(1), 1, START).is_some_and(|it| it.is_pending()));
    for (shadow, tentative) in [(false, false), (false, true), (true, false), (true, true)] {
        let Charge { cost, shadow: is_shadow, tentative: is_tentative, .. } =
            desk.store.question((key(1), 1), START, shadow, tentative);
        assert_eq!((cost, is_shadow, is_tentative), (1, shadow, tentative));
    }
}

/// Only admissions count towards the gateway's share of the limit.
#[test]
fn refusal_is_not_written_to_shared_data() {
    let mut desk = Desk::new("W", 1000);
    desk.ask(1, 0);
    desk.hear(&refuses(MS, false), 0, 0);
    assert_eq!(desk.data.writes.get(), 0);
    desk.hear(&lends(10), 2 * MS, 2 * MS);
    assert!(desk.data.writes.get() > 0);
}

/// A worker remembers no admitted account of a daily quota.
#[test]
fn daily_account_takes_no_cache_slot() {
    let rule = Rule::new("W", Quota::new(Unit::Day, 10));
    let daily = Some(Shape::new(1000, 10_000, 10));
    let mut desk = Desk::of(CounterSpec { daily, ..rule.spec(100) });
    desk.hear(&lends(0), 0, 0);
    assert_eq!(desk.store.left(key(1)), None);
    desk.hear(&refuses(SECOND, false), 0, 0);
    assert_eq!(desk.store.left(key(1)), Some(0));
}

/// Leases of Redis, and of the gateway's share.
#[test]
fn leases_keep_maintenance_active() {
    let is_busy = |of_redis: bool, of_gateway: bool| {
        let mut desk = Desk::new("TB", 1000);
        if of_redis {
            desk.ask(1, 0);
            desk.hear(&lends(10), 0, 0);
        }
        desk.handle.replace(away());
        for _ in 0..if of_gateway { 40 } else { 0 } {
            assert!(desk.store.take(key(2), 1, START).is_none());
        }
        desk.store.maintain(START).is_busy
    };
    for (of_redis, of_gateway) in [(false, false), (true, false), (false, true), (true, true)] {
        assert_eq!(is_busy(of_redis, of_gateway), of_redis || of_gateway);
    }
}

/// The share is unchanged while the number of gateways is.
#[test]
fn degraded_mode_leases_from_the_share() {
    let mut desk = Desk::new("TB", 10_000);
    desk.handle.replace(away());
    for _ in 0..60 {
        assert!(desk.store.take(key(2), 1, START).is_none());
    }
    let writes = desk.data.writes.get();
    assert!((0..20).all(|_| desk.store.take(key(2), 1, START).is_none()));
    assert_eq!(desk.data.writes.get(), writes);
}

#[test]
fn rule_without_leases_requests_none() {
    let rule = |short| Rule::new(short, Quota::new(Unit::Second, 1000)).spec(100);
    let by_day = Rule::new("W", Quota::new(Unit::Day, 1000)).spec(100);
    for (spec, lends) in [
        (rule("W"), true),
        (rule("LB"), false),
        (CounterSpec { settles: true, ..rule("W") }, false),
        (CounterSpec { daily: Some(Shape::new(1000, 10_000, 1000)), ..by_day }, false),
    ] {
        let mut desk = Desk::of(spec);
        assert_eq!(desk.ask(40, 0).want, 0, "nothing is known of it yet");
        desk.fail(START);
        assert_eq!(desk.ask(1, MS).want > 0, lends);
        assert!(!desk.handle.borrow().has_operations());
    }
}
