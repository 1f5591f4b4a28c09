//! Callers with a change of plan while Redis counts them, or while it is unavailable.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use diana_policy::bloom::Shape;
use diana_policy::time::{Now, SECOND, Unit};
use diana_policy::{Plan, PlanKind, Plans, Quota};
use diana_redis::outbox::{Operation, Outbox};
use diana_redis::protocol::{Charge, Effect, Numbers, RuleReply};
use diana_redis::store::RedisStore;
use diana_store::lease::{Received, Wanted};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{Account, CounterSpec, Store};
use kit::fake::CountingData;
use kit::store::Take;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::together;

use crate::redis::store::away;
use crate::support::redis_rule::{self, received, refuses};

const FREE: u64 = 0;
const GOLD: u64 = 1;
const PLANS: [(u64, u64); 2] = [(FREE, 100), (GOLD, 1000)];

/// A rule of a worker with two plans and a single caller.
struct RedisRule {
    store: RedisStore,
    outbox: Rc<RefCell<Outbox>>,
    data: Rc<CountingData>,
    spec: CounterSpec,
}

/// Redis admits a request, and leases this number of permits.
fn lends(block: u64) -> RuleReply {
    RuleReply { remaining: 50, ..redis_rule::lends(block) }
}

impl RedisRule {
    fn new() -> RedisRule {
        RedisRule::of(Quota::new(Unit::Hour, 100), None)
    }

    fn of(quota: Quota, daily: Option<Shape>) -> RedisRule {
        RedisRule::settling(quota, daily, false)
    }

    fn settling(quota: Quota, daily: Option<Shape>, settles: bool) -> RedisRule {
        let gold = Quota { rpu: 1000, ..quota };
        let of = vec![Plan { name: "gold".into(), quota: Some(gold), until: None }];
        let plans = Some(Arc::new(Plans {
            own: quota,
            kind: PlanKind::Listed { by: None, of, is_other_unlimited: false },
            month_starts: None,
        }));
        let spec = CounterSpec { plans, daily, settles, ..Rule::new("W", quota).spec(100) };
        let data = Rc::<CountingData>::default();
        let mut tables = Tables::default();
        let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
        let outbox = together();
        let opened = RedisStore::new(spec.clone(), 0, outbox.clone(), &mut stores);
        let store = opened.unwrap();
        RedisRule { store, outbox, data, spec }
    }

    fn numbers(&self, plan: u64) -> Numbers {
        Numbers::of_rule(self.spec.entry, &self.spec.under(plan).quota).unwrap()
    }

    /// Returns true if a request under a plan requires Redis.
    fn asks(&mut self, plan: u64, now: Now) -> bool {
        self.store.checked(Account { key: key(1), plan }, 1, now).is_pending()
    }

    fn question(&mut self, plan: u64, now: Now) -> Charge {
        assert!(self.asks(plan, now));
        self.store.question((key(1), 1), now, false, false)
    }

    /// Processes the reply to a question under a plan.
    fn on_reply(&mut self, plan: u64, reply: &RuleReply, now: Now) -> u64 {
        self.store.use_plan(plan);
        self.store.receive(key(1), received(reply, (1, 1), (now, now)))
    }

    fn admitted(&mut self, plan: u64, now: Now) -> u64 {
        let (account, store) = (Account { key: key(1), plan }, &mut self.store);
        let at = |request| now.later(request * SECOND / 10_000);
        (0..2000).take_while(|it| store.take(account, 1, at(*it)).is_none()).count() as u64
    }

    /// The only returned block, in parts: its quota, its size and its unspent permits.
    fn back(&mut self) -> (Numbers, u64, u64) {
        let all = self.outbox.borrow_mut().take(usize::MAX);
        let parts = all.iter().map(|part| {
            let Operation::Return(Charge { numbers, effect, .. }) = part else { panic!("{all:?}") };
            let Effect::ReturnBlock { receipt: 5, term: 4, block, left } = *effect else {
                panic!("{all:?}")
            };
            (*numbers, block, left)
        });
        let whole = parts.reduce(|whole, part| {
            assert_eq!(whole.0, part.0);
            (whole.0, whole.1 + part.1, whole.2 + part.2)
        });
        whole.unwrap()
    }
}

#[test]
fn lease_is_spent_and_returned_under_its_own_plan() {
    for (before, after) in [(FREE, GOLD), (GOLD, FREE)] {
        let mut redis_rule = RedisRule::new();
        let by = redis_rule.numbers(before);
        assert_eq!(redis_rule.question(before, START).numbers, by);
        redis_rule.on_reply(before, &lends(10), START);
        assert!(!redis_rule.asks(before, START), "there is a block");
        assert!(redis_rule.store.take(Account { key: key(1), plan: before }, 1, START).is_none());
        assert_eq!(redis_rule.store.left(key(1)), Some(59));
        assert!(redis_rule.asks(after, START));
        assert_eq!(redis_rule.back(), (by, 10, 9));
        assert_eq!(redis_rule.store.left(key(1)), Some(0), "what is left there is not known");
        assert_eq!(redis_rule.question(after, START).numbers, redis_rule.numbers(after));
        redis_rule.on_reply(after, &lends(7), START);
        assert!(!redis_rule.asks(after, START), "it has a block of its own");
        assert!(!redis_rule.outbox.borrow().has_operations());
    }
}

/// The reply then belongs to that plan, even if the caller has another one by then.
#[test]
fn low_lease_is_renewed_under_its_own_plan() {
    for plan in [FREE, GOLD] {
        let mut redis_rule = RedisRule::new();
        (0..40).for_each(|_| _ = redis_rule.question(plan, START));
        redis_rule.on_reply(plan, &lends(100), START);
        assert_eq!(redis_rule.admitted(plan, START), 100);
        let all = redis_rule.outbox.borrow_mut().take(usize::MAX);
        let returned = all.iter().filter_map(|it| match it {
            Operation::Return(part) => Some(part.numbers),
            _ => None,
        });
        let renewed = all.iter().filter_map(|it| match it {
            Operation::Renew(0, under, _) => Some(*under),
            _ => None,
        });
        assert_eq!(renewed.collect::<Vec<u64>>(), [plan]);
        assert!(returned.clone().count() > 0);
        assert!({ returned }.all(|numbers| numbers == redis_rule.numbers(plan)));
    }
}

/// A settlement is recorded later, and a request without a permit has no usage.
#[test]
fn reply_under_a_former_plan_is_recorded_once() {
    for (settles, permits, is_noted) in
        [(false, 1, true), (false, 0, false), (true, 1, false), (true, 0, false)]
    {
        let mut redis_rule = RedisRule::settling(Quota::new(Unit::Hour, 100), None, settles);
        redis_rule.question(GOLD, START);
        redis_rule.store.use_plan(FREE);
        let instants = (START, START);
        let reply = lends(0);
        let received = received(&reply, (1, permits), instants);
        redis_rule.store.receive(key(1), Received { asked: Wanted::default(), ..received });
        assert_eq!(redis_rule.data.writes.get() > 0, is_noted, "{settles} {permits}");
    }
}

#[test]
fn closed_store_returns_leases_under_their_plan() {
    let mut redis_rule = RedisRule::new();
    redis_rule.question(GOLD, START);
    redis_rule.on_reply(GOLD, &lends(10), START);
    redis_rule.store.use_plan(FREE);
    redis_rule.store.close(START);
    assert_eq!(redis_rule.back(), (redis_rule.numbers(GOLD), 10, 10));
}

#[test]
fn cached_refusal_does_not_apply_to_another_plan() {
    for (before, after) in [(FREE, GOLD), (GOLD, FREE)] {
        let mut redis_rule = RedisRule::new();
        redis_rule.question(before, START);
        redis_rule.on_reply(before, &refuses(SECOND, false), START);
        assert!(!redis_rule.asks(before, START.later(1)), "the refusal lasts");
        assert!(redis_rule.asks(after, START.later(1)));
        assert!(redis_rule.asks(before, START.later(1)), "it was forgotten");
    }
}

/// Neither exhaustion under the old plan nor a pending reply affects the new plan.
#[test]
fn new_plan_keeps_only_the_demand_of_a_caller() {
    for is_answered in [true, false] {
        let mut redis_rule = RedisRule::new();
        redis_rule.question(FREE, START);
        redis_rule.on_reply(FREE, &refuses(1, true), START.later(SECOND / 5));
        let now = START.later(SECOND / 4);
        (0..20).for_each(|_| _ = redis_rule.asks(FREE, now));
        redis_rule.store.question((key(1), 1), now, false, false);
        if is_answered {
            redis_rule.on_reply(FREE, &refuses(1, true), now);
        }
        let charge = redis_rule.question(GOLD, now.later(1));
        assert!(charge.want >= 20, "{charge:?}");
    }
}

/// The reply belongs to another plan, and so does its block.
#[test]
fn reply_under_a_former_plan_returns_its_lease() {
    for (before, after) in [(FREE, GOLD), (GOLD, FREE)] {
        let mut redis_rule = RedisRule::new();
        redis_rule.question(before, START);
        redis_rule.question(after, START);
        assert_eq!(
            redis_rule.on_reply(before, &lends(10), START),
            3,
            "under what its own cost was charged"
        );
        assert_eq!(redis_rule.back(), (redis_rule.numbers(before), 10, 10));
        assert!(redis_rule.asks(after, START));
        assert_eq!(redis_rule.store.left(key(1)), Some(0));
        redis_rule.on_reply(before, &refuses(SECOND, false), START);
        assert!(redis_rule.asks(after, START.later(1)));
        assert!(!redis_rule.outbox.borrow().has_operations(), "no block, nothing to give back");
    }
}

/// Admissions by Redis count towards the share of a gateway in degraded mode, regardless of the
/// caller's current plan.
#[test]
fn admissions_by_redis_count_in_degraded_mode() {
    for (plan, rpu) in PLANS {
        for other in [FREE, GOLD] {
            let mut redis_rule = RedisRule::new();
            redis_rule.question(plan, START);
            redis_rule.question(other, START);
            redis_rule.on_reply(plan, &lends(0), START);
            redis_rule.outbox.replace(away());
            assert_eq!(redis_rule.admitted(plan, START), rpu - 1, "{plan} {other}");
        }
    }
    let mut redis_rule = RedisRule::new();
    redis_rule.question(GOLD, START);
    redis_rule.on_reply(GOLD, &lends(500), START);
    redis_rule.outbox.replace(away());
    redis_rule.store.close(START);
    assert_eq!(redis_rule.admitted(GOLD, START), 499, "more than the other plan has at all");
}

/// The same for the filter of each day.
#[test]
fn degraded_mode_enforces_the_share_of_the_plan() {
    let daily = Shape::new(1000, 10_000, 1000);
    for daily in [None, Some(daily)] {
        for gateways in [1, 2, 3, 4] {
            let mut redis_rule = RedisRule::of(Quota::new(Unit::Day, 100), daily);
            redis_rule.outbox.replace(away());
            // The number of gateways becomes known later than the caller's plan.
            assert_eq!(redis_rule.admitted(FREE, START), 100);
            redis_rule.store.use_plan(GOLD);
            redis_rule.outbox.borrow_mut().gateways = gateways;
            let more = 1000_u64.div_ceil(gateways).saturating_sub(100);
            assert_eq!(redis_rule.admitted(GOLD, START), more, "one of {gateways}, {daily:?}");
            assert_eq!(redis_rule.admitted(FREE, START), 0);
        }
    }
}

/// The share is computed when it changes, not per request, and workers spend leases of it without a
/// write.
#[test]
fn caller_in_degraded_mode_costs_few_writes() {
    let mut redis_rule = RedisRule::of(Quota::new(Unit::Second, 100_000), None);
    redis_rule.outbox.replace(away());
    redis_rule.outbox.borrow_mut().gateways = 2;
    for request in 0..1000 {
        let now = START.later(request * 100);
        assert!(redis_rule.store.take(key(1), 1, now).is_none());
    }
    assert!(redis_rule.data.writes.get() < 300, "{} writes", redis_rule.data.writes.get());
}
