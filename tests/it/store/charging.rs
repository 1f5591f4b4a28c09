//! Charges, and usage that only one worker knows.

use std::rc::Rc;

use diana_policy::bloom::Shape;
use diana_policy::settlement::Settlement;
use diana_policy::time::{Now, SECOND, Unit};
use diana_policy::{Quota, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::usage::OrderError;
use diana_store::{CounterSpec, Store};
use kit::fake::FakeSharedData;
use kit::store::Take;
use kit::store::ended;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;

const LIMIT: u64 = 7;

fn spec() -> CounterSpec {
    Rule::new("W", Quota::new(Unit::Day, LIMIT)).spec(100)
}

/// The stores of a worker: its table, and a filter of many accounts.
fn stores() -> [(&'static str, Box<dyn Store>); 2] {
    let daily = Some(Shape::new(1000, 10_000, 10));
    [("local", spec()), ("daily", CounterSpec { daily, ..spec() })].map(|(name, spec)| {
        let (data, mut tables) = (Rc::<FakeSharedData>::default(), Tables::default());
        (name, Stores::new("test".into(), data, &mut tables).open(Scope::Local, spec))
    })
}

fn checked(store: &mut dyn Store, caller: u64, now: Now) -> bool {
    let mut found = store.checked(key(caller).into(), 1, now);
    store.charged(&mut found, 0).is_admitted()
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
    for (name, mut store) in stores() {
        assert!(checked(&mut *store, 1, START));
        for resets in [false, true] {
            let usage = store.usage(key(1).into(), resets, START);
            assert_eq!(usage, Err(OrderError::Local), "{name}");
        }
    }
}
