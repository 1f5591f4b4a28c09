//! The store of a gateway's requests in flight: individual charges, cancellations and settlements.

use std::rc::Rc;

use diana_algorithm::IN_FLIGHT;
use diana_policy::time::Unit;
use diana_policy::{Quota, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::usage::OrderError;
use diana_store::{CounterSpec, Store};
use kit::fake::FakeSharedData;
use kit::store::Take;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;

const LIMIT: u64 = 3;

/// Two workers of a gateway.
fn open() -> [Box<dyn Store>; 2] {
    let data = Rc::<FakeSharedData>::default();
    [(); 2].map(|()| {
        let quota = Quota::new(Unit::Second, LIMIT);
        let algorithm = (IN_FLIGHT.build)(&quota).unwrap();
        let plain = Rule::new("W", quota).spec(100);
        let spec = CounterSpec { entry: IN_FLIGHT, algorithm, ..plain };
        let mut tables = Tables::default();
        Stores::new("test".into(), data.clone(), &mut tables).open(Scope::Gateway, spec)
    })
}

#[test]
fn in_flight_usage_cannot_be_reset() {
    let [mut ours, _] = open();
    let mut found = ours.checked(key(1).into(), 1, START);
    assert!(ours.charged(&mut found, 0).is_admitted());
    assert_eq!(ours.usage(key(1).into(), true, START), Err(OrderError::InUse));
    assert_eq!((ours.maintain(START).keys, ours.close(START)), (0, 0));
}
