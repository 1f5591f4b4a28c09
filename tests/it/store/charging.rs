//! The ways to charge a request: after a check, or directly. In each of them a caller gets exactly
//! its limit.

use std::rc::Rc;

use diana_algorithm::IN_FLIGHT;
use diana_policy::bloom::Shape;
use diana_policy::decision::Decision;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Now, SECOND, Unit};
use diana_policy::{Quota, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::usage::OrderError;
use diana_store::{CounterSpec, Store};
use kit::fake::FakeSharedData;
use kit::store::ended;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;
use kit::store::{Decided, Take};

const LIMIT: u64 = 7;
const CALLERS: u64 = 5;

fn spec() -> CounterSpec {
    Rule::new("W", Quota::new(Unit::Day, LIMIT)).spec(100)
}

/// All stores: a worker, a gateway, a filter of many accounts, and in-flight slots.
fn stores() -> [(&'static str, Box<dyn Store>); 4] {
    let in_flight = || {
        let quota = Quota::new(Unit::Second, LIMIT);
        CounterSpec { entry: IN_FLIGHT, algorithm: (IN_FLIGHT.build)(&quota).unwrap(), ..spec() }
    };
    let daily = CounterSpec { daily: Some(Shape::new(1000, 10_000, 10)), ..spec() };
    [
        ("local", Scope::Local, spec()),
        ("gateway", Scope::Gateway, spec()),
        ("daily", Scope::Local, daily),
        ("in flight", Scope::Gateway, in_flight()),
    ]
    .map(|(name, scope, spec)| {
        let (data, mut tables) = (Rc::<FakeSharedData>::default(), Tables::default());
        (name, Stores::new("test".into(), data, &mut tables).open(scope, spec))
    })
}

fn checked(store: &mut dyn Store, caller: u64, now: Now) -> bool {
    let mut found = store.checked(key(caller).into(), 1, now);
    store.charged(&mut found, 0).is_admitted()
}

#[test]
fn every_way_to_charge_admits_exactly_the_limit() {
    for (name, mut store) in stores() {
        for caller in 0..CALLERS {
            let asks = 0..3 * LIMIT;
            let given = asks.filter(|after| checked(&mut *store, caller, START.later(*after)));
            assert_eq!(given.count() as u64, LIMIT, "{name}");
            let found = store.checked(key(caller).into(), 1, START.later(3 * LIMIT));
            assert_ne!(found.decision(), Decision::NOW, "{name}");
            assert_eq!(store.remaining(&found).map(|it| it.permits), Some(0), "{name}");
        }
    }
}

/// Most charges come from blocks, and have their receipts.
#[test]
fn unused_permits_are_returned_for_any_charge() {
    const MOST: u64 = 1000;
    for short in ["W", "SW"] {
        let (data, mut tables) = (Rc::<FakeSharedData>::default(), Tables::default());
        let rule = Rule::new(short, Quota::new(Unit::Day, MOST));
        let spec = CounterSpec { settles: true, ..rule.spec(100) };
        let mut stores = Stores::new("test".into(), data, &mut tables);
        let traffic = stores.traffic.clone();
        let mut store = stores.open(Scope::Gateway, spec);
        let charge = |number: u64| {
            let now = START.later(number * SECOND / 1000);
            let mut found = store.checked(key(1).into(), 1, now);
            assert!(store.charged(&mut found, 0).is_admitted(), "{short}");
            let (receipt, since) = (found.receipt.unwrap(), now.mono);
            Settlement { receipt, since, reserved: 1, used: 0 }
        };
        let charged: Vec<_> = (0..300).map(charge).collect();
        assert!(traffic.writes.get() < 100, "{short}: {:?}", traffic.writes);
        let now = START.later(2 * SECOND);
        for settlement in charged {
            assert!(store.settle(&ended(key(1), &settlement), now), "{short}");
        }
        while store.maintain(now).is_busy {}
        assert_eq!(store.usage(key(1).into(), false, now).unwrap().remaining, MOST, "{short}");
    }
}

#[test]
fn local_usage_is_neither_read_nor_reset() {
    for (name, mut store) in
        stores().into_iter().filter(|(name, _)| ["local", "daily"].contains(name))
    {
        assert!(checked(&mut *store, 1, START));
        for resets in [false, true] {
            let usage = store.usage(key(1).into(), resets, START);
            assert_eq!(usage, Err(OrderError::Local), "{name}");
        }
    }
}
