//! Calls to Redis when an operator reads or resets a caller's usage.

use diana_policy::Quota;
use diana_policy::bloom::Shape;
use diana_policy::time::Unit;
use diana_redis::protocol::Back;
use diana_store::CounterSpec;
use diana_store::usage::Unliftable;
use kit::store::gateway::key;
use kit::store::rule::Rule;

use super::desk::Desk;

#[test]
fn usage_query_charges_and_resets_nothing() {
    let desk = Desk::new("W", 10);
    for (asked, back) in
        [(desk.store.looks_at(key(1)), Back::Looks), (desk.store.lifts(key(1)), Back::Lifts)]
    {
        assert_eq!((asked.caller, asked.back, asked.cost, asked.want), (key(1), back, 0, 0));
    }
}

#[test]
fn queues_and_quotas_are_not_reset_in_redis() {
    let spec = |short| Rule::new(short, Quota::new(Unit::Second, 10)).spec(100);
    let daily = Some(Shape::new(1000, 10_000, 10));
    for (spec, wanted) in [
        (spec("W"), Ok(())),
        (spec("SW"), Ok(())),
        (spec("TB"), Ok(())),
        (spec("LB"), Err(Unliftable::Line)),
        (CounterSpec { daily, ..spec("W") }, Err(Unliftable::Quota)),
    ] {
        let name = spec.entry.short;
        assert_eq!(Desk::of(spec).store.can_lift(), wanted, "{name}");
    }
}
