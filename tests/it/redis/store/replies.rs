//! A worker's handling of Redis's replies and of returned permits.

use diana_policy::Quota;
use diana_policy::bloom::Shape;
use diana_policy::decision::Decision;
use diana_policy::key::Key;
use diana_policy::redis::OnFailure;
use diana_policy::time::{SECOND, Unit};
use diana_redis::outbox::Operation;
use diana_redis::protocol::{Charge, Effect};
use diana_store::lease::{Received, Wanted};
use diana_store::{CounterSpec, Store};
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::{Take, left};

use super::away;
use crate::support::gateway::MS;
use crate::support::redis_rule::{RedisRule, lends, received, refuses};

fn daily() -> CounterSpec {
    let daily = Some(Shape::new(1000, 10_000, 10));
    CounterSpec { daily, ..Rule::new("W", Quota::new(Unit::Day, 10)).spec(100) }
}

/// Returns by caller.
fn back(redis_rule: &mut RedisRule) -> Vec<(u64, Effect)> {
    let all = redis_rule.outbox.borrow_mut().take(usize::MAX);
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
        let mut redis_rule = RedisRule::new("W", 1000);
        redis_rule.ask(1, 0);
        redis_rule.on_reply(&lends(lent), 0, 0);
        redis_rule.on_reply(&lends(0), 0, 0);
        assert_eq!(redis_rule.store.left(key(1)), Some(500 + lent));
        assert_eq!(back(&mut redis_rule), []);
        assert!((0..lent).all(|_| redis_rule.store.take(key(1), 1, START).is_none()));
    }
}

/// Two callers may need the same line of the gateway at once.
#[test]
fn lease_without_a_line_is_returned() {
    let mut redis_rule = RedisRule::new("SW", 1000);
    let callers = [1, 1 + 4096].map(|hash| Key { hash, second_hash: 0 });
    for (caller, block) in callers.into_iter().zip([10, 7]) {
        redis_rule.store.question((caller, 1), START, false, false);
        redis_rule.store.receive(caller, received(&lends(block), (1, 1), (START, START)));
    }
    assert_eq!(back(&mut redis_rule), [(callers[1].hash, block(7, 7))]);
    assert_eq!(redis_rule.store.left(callers[0]), Some(510));
}

#[test]
fn refusal_of_redis_does_not_apply_in_degraded_mode() {
    let mut redis_rule = RedisRule::new("W", 1000);
    redis_rule.ask(40, 0);
    redis_rule.on_reply(&refuses(SECOND, false), 0, 0);
    assert!(!redis_rule.check(1).is_pending());
    redis_rule.outbox.replace(away());
    for after in [1, 200 * MS] {
        assert!(redis_rule.store.take(key(1), 1, START.later(after)).is_none());
    }
}

#[test]
fn reset_and_close_drop_a_cached_refusal() {
    let mut redis_rule = RedisRule::new("W", 1000);
    let forget: [fn(&mut RedisRule); 2] =
        [|redis_rule| redis_rule.reset(), |redis_rule| _ = redis_rule.store.close(START)];
    for forget in forget {
        redis_rule.ask(1, 0);
        redis_rule.on_reply(&refuses(SECOND, false), 0, 0);
        assert!(!redis_rule.check(1).is_pending());
        forget(&mut redis_rule);
        assert!(redis_rule.check(1).is_pending());
    }
}

#[test]
fn request_that_leaves_early_returns_its_position_to_redis() {
    let mut redis_rule = RedisRule::of(Rule::new("LB", Quota::new(Unit::Second, 1000)).spec(100));
    assert!(redis_rule.store.settle(&left(key(1), 9, 3), START));
    let sent = redis_rule.outbox.borrow_mut().ledgers.take(&[], START.mono);
    let [(.., charges)] = &sent[..] else { panic!("{} batches", sent.len()) };
    assert_eq!(charges[0].effect, Effect::ReturnCost { receipt: 9, term: 0, permits: 3 });
}

/// Permits that were granted without being counted.
#[test]
fn cancelled_uncounted_permit_adds_nothing_to_a_lease() {
    let mut redis_rule = RedisRule::new("W", 1000);
    redis_rule.ask(1, 0);
    redis_rule.on_reply(&lends(10), 0, 0);
    assert!(redis_rule.store.take(key(1), 1, START).is_none());
    redis_rule.outbox.replace(away());
    redis_rule.outbox.borrow_mut().on_failure = OnFailure::Allow;
    let now = START.later(SECOND);
    let mut free = redis_rule.store.checked(key(1).into(), 1, now);
    assert!(redis_rule.store.charged(&mut free, 0).is_admitted());
    redis_rule.store.cancel(&mut free);
    redis_rule.store.close(now);
    assert_eq!(back(&mut redis_rule), [(key(1).hash, block(10, 9))]);
}

/// The account shares counters with one that was charged in the meantime.
#[test]
fn repeated_check_stays_with_the_gateway() {
    let mut redis_rule = RedisRule::of(daily());
    redis_rule.outbox.replace(away());
    let mut first = redis_rule.check(0);
    let mut second = redis_rule.store.checked(key(2).into(), 1, START);
    for reservation in [&mut second, &mut first] {
        assert!(redis_rule.store.charged(reservation, 0).is_admitted());
        assert_eq!(redis_rule.store.remaining(reservation).map(|it| it.permits), Some(9));
    }
}

#[test]
fn rule_of_redis_has_no_local_balance() {
    let mut redis_rule = RedisRule::new("W", 1000);
    let asked = redis_rule.check(0);
    assert_eq!(redis_rule.store.remaining(&asked), None);
    let asked = redis_rule.store.take(key(1), 1, START);
    assert!(asked.is_some_and(|it| it.is_pending()), "nobody has decided yet");
}

/// Each account separately, on the day of its charges.
#[test]
fn daily_admissions_by_redis_count_in_degraded_mode() {
    let mut redis_rule = RedisRule::of(daily());
    redis_rule.on_reply(&lends(0), 0, 0);
    for after in [0, 24 * 3600 * SECOND] {
        let now = START.later(after);
        for _ in 0..4 {
            redis_rule.store.receive(key(1), received(&lends(0), (1, 1), (now, now)));
        }
        redis_rule.outbox.replace(away());
        for (caller, left) in [(1, 6), (2, 10)] {
            let admitted = (0..20).filter(|_| redis_rule.store.take(key(caller), 1, now).is_none());
            assert_eq!(admitted.count(), left, "{after}");
        }
    }
}

#[test]
fn lease_is_spent_once() {
    let mut redis_rule = RedisRule::new("TB", 1000);
    redis_rule.ask(1, 0);
    redis_rule.on_reply(&lends(10), 0, 0);
    assert_eq!(redis_rule.store.left(key(1)), Some(510));
    // A dropped check returns no permits.
    let mut untaken = redis_rule.check(0);
    redis_rule.store.cancel(&mut untaken);
    assert_eq!(redis_rule.store.left(key(1)), Some(510));
    for taken in 1..=10 {
        assert!(redis_rule.store.take(key(1), 1, START).is_none());
        assert_eq!(redis_rule.store.left(key(1)), Some(510 - taken));
    }
    assert!(redis_rule.check(0).is_pending());
    let late = redis_rule.store.charged(&mut untaken, 0);
    assert_eq!(late, Decision::retry(1), "others have spent it");
}

#[test]
fn question_charges_nothing() {
    let mut redis_rule = RedisRule::new("TB", 1000);
    let mut asked = redis_rule.check(0);
    assert!(asked.is_pending());
    assert!(redis_rule.store.ask(&asked).is_some());
    redis_rule.store.charge(&mut asked, 0);
    assert!(asked.is_pending() && !asked.is_charged());
    assert!(redis_rule.store.take(key(1), 1, START).is_some_and(|it| it.is_pending()));
    for (shadow, tentative) in [(false, false), (false, true), (true, false), (true, true)] {
        let Charge { cost, shadow: is_shadow, tentative: is_tentative, .. } =
            redis_rule.store.question((key(1), 1), START, shadow, tentative);
        assert_eq!((cost, is_shadow, is_tentative), (1, shadow, tentative));
    }
}

/// Only admissions count towards the gateway's share of the limit.
#[test]
fn refusal_is_not_written_to_shared_data() {
    let mut redis_rule = RedisRule::new("W", 1000);
    redis_rule.ask(1, 0);
    let reply = refuses(MS, false);
    let received = received(&reply, (1, 0), (START, START));
    redis_rule.store.receive(key(1), Received { asked: Wanted::default(), ..received });
    assert_eq!(redis_rule.data.writes.get(), 0);
    redis_rule.on_reply(&lends(10), 2 * MS, 2 * MS);
    assert!(redis_rule.data.writes.get() > 0);
}

/// A worker remembers no admitted account of a daily quota.
#[test]
fn daily_account_takes_no_cache_slot() {
    let rule = Rule::new("W", Quota::new(Unit::Day, 10));
    let daily = Some(Shape::new(1000, 10_000, 10));
    let mut redis_rule = RedisRule::of(CounterSpec { daily, ..rule.spec(100) });
    redis_rule.on_reply(&lends(0), 0, 0);
    assert_eq!(redis_rule.store.left(key(1)), None);
    redis_rule.on_reply(&refuses(SECOND, false), 0, 0);
    assert_eq!(redis_rule.store.left(key(1)), Some(0));
}

/// Leases of Redis, and of the gateway's share.
#[test]
fn leases_keep_maintenance_active() {
    let is_busy = |of_redis: bool, of_gateway: bool| {
        let mut redis_rule = RedisRule::new("TB", 1000);
        if of_redis {
            redis_rule.ask(1, 0);
            redis_rule.on_reply(&lends(10), 0, 0);
        }
        redis_rule.outbox.replace(away());
        for _ in 0..if of_gateway { 40 } else { 0 } {
            assert!(redis_rule.store.take(key(2), 1, START).is_none());
        }
        redis_rule.store.maintain(START).is_busy
    };
    for (of_redis, of_gateway) in [(false, false), (true, false), (false, true), (true, true)] {
        assert_eq!(is_busy(of_redis, of_gateway), of_redis || of_gateway);
    }
}

/// The share is unchanged while the number of gateways is.
#[test]
fn degraded_mode_leases_from_the_share() {
    let mut redis_rule = RedisRule::new("TB", 10_000);
    redis_rule.outbox.replace(away());
    for _ in 0..60 {
        assert!(redis_rule.store.take(key(2), 1, START).is_none());
    }
    let writes = redis_rule.data.writes.get();
    assert!((0..20).all(|_| redis_rule.store.take(key(2), 1, START).is_none()));
    assert_eq!(redis_rule.data.writes.get(), writes);
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
        let mut redis_rule = RedisRule::of(spec);
        assert_eq!(redis_rule.ask(40, 0).want, 0, "nothing is known of it yet");
        redis_rule.fail(START);
        assert_eq!(redis_rule.ask(1, MS).want > 0, lends);
        assert!(!redis_rule.outbox.borrow().has_operations());
    }
}
