//! A rule with settlements: its handling of Redis's replies, and its reports of usage.

use diana_policy::Quota;
use diana_policy::decision::Retry;
use diana_policy::settlement::Settlement;
use diana_policy::time::{SECOND, Unit};
use diana_redis::protocol::{Effect, RuleReply};
use diana_store::lease::{Received, Wanted};
use diana_store::{CounterSpec, Store};
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::{Take, ended};

use super::away;
use crate::support::gateway::MS;
use crate::support::redis_rule::{RedisRule, lends, received, refuses};

/// Another rule may have refused the earlier requests, so that their reservations were returned.
#[test]
fn settling_rule_caches_refusals_briefly() {
    let rule = Rule::new("W", Quota::new(Unit::Second, 1000));
    let mut redis_rule = RedisRule::of(CounterSpec { settles: true, ..rule.spec(100) });
    redis_rule.ask(40, 0);
    redis_rule.on_reply(&refuses(SECOND, false), 0, 0);
    // Now the caller is known as busy and refused.
    assert!((0..40).all(|_| !redis_rule.check(20 * MS - 1).is_pending()));
    assert!(redis_rule.check(20 * MS).is_pending());
    assert_eq!(redis_rule.renewals(), 0);
}

/// Reservation and usage: only a difference is sent, unless usage is stored separately.
#[test]
fn only_differences_and_kept_usage_are_settled() {
    for (keeps_used, reserved, used, wanted) in [
        (false, 5, 5, None),
        (false, 0, 0, None),
        (false, 5, 3, Some((Some(2), None))),
        (false, 5, 9, Some((None, Some(4)))),
        (true, 0, 0, None),
        (true, 1, 1, Some((Some(0), None))),
        (true, 5, 0, Some((Some(5), None))),
    ] {
        let rule = Rule::new("W", Quota::new(Unit::Second, 100));
        let spec = CounterSpec { settles: true, keeps_used, ..rule.spec(100) };
        let mut redis_rule = RedisRule::of(spec);
        let settlement = Settlement { receipt: 9, since: START.mono, reserved, used };
        assert!(redis_rule.store.settle(&ended(key(1), &settlement), START));
        let sent = redis_rule.outbox.borrow_mut().ledgers.take(&[], START.mono);
        let found = sent.first().map(|(.., charges)| match charges[0].effect {
            Effect::ReturnCost { permits, .. } => (Some(permits), None),
            Effect::ChargeDebt { permits, .. } => (None, Some(permits)),
            ref other => panic!("{other:?}"),
        });
        assert_eq!(found, wanted, "{keeps_used} {reserved} {used}");
        redis_rule.outbox.replace(away());
        let left = (0..200).take_while(|_| redis_rule.store.take(key(1), 1, START).is_none());
        assert_eq!(left.count() as u64, 100 - used);
    }
}

/// Reservations may be returned; only usage counts while Redis is unavailable.
#[test]
fn admission_by_redis_counts_at_settlement() {
    let rule = Rule::new("W", Quota::new(Unit::Second, 100));
    let mut redis_rule = RedisRule::of(CounterSpec { settles: true, ..rule.spec(100) });
    for permits in [1, 40] {
        let instants = (START, START);
        let reply = lends(0);
        let received = received(&reply, (permits, permits), instants);
        redis_rule.store.receive(key(1), Received { asked: Wanted::default(), ..received });
    }
    assert_eq!(redis_rule.data.writes.get(), 0);
    redis_rule.outbox.replace(away());
    let admitted = (0..200).take_while(|_| redis_rule.store.take(key(1), 1, START).is_none());
    assert_eq!(admitted.count(), 100);
}

/// The usage of a request is unknown when its charge is sent.
#[test]
fn rule_that_keeps_usage_sends_it() {
    for keeps_used in [false, true] {
        let rule = Rule::new("W", Quota::new(Unit::Second, 100));
        let mut redis_rule =
            RedisRule::of(CounterSpec { settles: true, keeps_used, ..rule.spec(100) });
        assert_eq!(redis_rule.ask(1, 0).counted, keeps_used.then_some(0));
        let reply = RuleReply { retry: Some(Retry::Never), ..lends(0) };
        redis_rule.on_reply(&reply, 0, 0);
        assert!(redis_rule.check(1).is_pending(), "what is never is not remembered");
    }
}
