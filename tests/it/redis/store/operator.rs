//! Calls to Redis when an operator reads or resets a caller's usage.

use diana_policy::Quota;
use diana_policy::bloom::Shape;
use diana_policy::time::Unit;
use diana_redis::protocol::{Effect, Question};
use diana_store::usage::{Order, OrderError};
use diana_store::{CounterSpec, Store};
use kit::store::gateway::key;
use kit::store::rule::Rule;

use crate::support::redis_rule::RedisRule;

#[test]
fn usage_query_charges_and_resets_nothing() {
    for (order, effect) in [(Order::Look, Effect::ReadUsage), (Order::Reset, Effect::Reset)] {
        let mut redis_rule = RedisRule::new("W", 10);
        let asked = redis_rule.store.ask_usage(key(1).into(), order);
        let Some(Ok(Question::Rule(asked))) = asked else { panic!("{asked:?}") };
        assert_eq!((asked.caller, asked.effect, asked.cost, asked.want), (key(1), effect, 0, 0));
    }
}

#[test]
fn queues_and_quotas_are_not_reset_in_redis() {
    let spec = |short| Rule::new(short, Quota::new(Unit::Second, 10)).spec(100);
    let daily = Some(Shape::new(1000, 10_000, 10));
    for (spec, wanted) in [
        (spec("W"), None),
        (spec("SW"), None),
        (spec("TB"), None),
        (spec("LB"), Some(OrderError::InUse)),
        (CounterSpec { daily, ..spec("W") }, Some(OrderError::Quota)),
    ] {
        let name = spec.entry.short;
        let asked = RedisRule::of(spec).store.ask_usage(key(1).into(), Order::Reset);
        assert_eq!(asked.unwrap().err(), wanted, "{name}");
    }
}
