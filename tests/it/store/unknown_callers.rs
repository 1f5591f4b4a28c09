//! Settlements and resets of unknown callers, and of callers that share a bucket.

use std::rc::Rc;

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

const LIMIT: u64 = 10;

struct Gateway {
    store: Box<dyn Store>,
    data: Rc<FakeSharedData>,
}

impl Gateway {
    fn new(lifts: bool) -> Gateway {
        let data = Rc::<FakeSharedData>::default();
        let mut tables = Tables::default();
        let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
        stores.resets_bans = lifts;
        let rule = Rule::new("W", Quota::new(Unit::Day, LIMIT));
        let spec = CounterSpec { settles: true, may_be_cancelled: true, ..rule.spec(1000) };
        Gateway { store: stores.open(Scope::Gateway, spec), data }
    }

    /// Reserves a permit for a caller. Returns the receipt.
    fn reserve(&mut self, caller: u64, now: Now) -> u64 {
        let mut found = self.store.checked(key(caller).into(), 1, now);
        assert!(self.store.charged(&mut found, 0).is_admitted());
        found.receipt.unwrap()
    }

    fn left(&mut self, caller: u64, now: Now) -> u64 {
        self.store.usage(key(caller).into(), false, now).unwrap().remaining
    }
}

fn at(seconds: u64) -> Now {
    START.later(seconds * SECOND)
}

/// A forgotten caller has no permits to return, but still owes its usage beyond the reservation.
#[test]
fn settlement_of_an_expired_caller_charges_its_debt() {
    for (used, more) in [(0, 0), (1, 0), (2, -1), (5, -4)] {
        let mut gateway = Gateway::new(false);
        // The names of slots with callers contain a number.
        let is_slot = |key: &String| key.rsplit('/').next().is_some_and(|name| name.contains('.'));
        let settlement = Settlement { receipt: 0, since: START.mono, reserved: 1, used };
        assert!(gateway.store.settle(&ended(key(1), &settlement), START));
        assert_eq!(gateway.data.keys().iter().any(is_slot), more < 0, "{used}");
        assert_eq!(gateway.left(1, START) as i64 - LIMIT as i64, more, "{used}");
    }
}

/// The caller shared a bucket for lack of room. After it gets a slot, only the slot is read.
#[test]
fn reset_clears_the_slot_not_the_former_bucket() {
    // One permit is regained per second.
    let quota = Quota::new(Unit::of(LIMIT * SECOND), LIMIT);
    let data = Rc::<FakeSharedData>::default();
    let mut tables = Tables::default();
    let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
    stores.resets_bans = true;
    let store = stores.open(Scope::Gateway, Rule::new("TB", quota).spec(8));
    let mut gateway = Gateway { store, data };
    let usage =
        |gateway: &mut Gateway, now| gateway.store.usage(key(1).into(), false, now).unwrap();
    let mut others = 100..;
    while !usage(&mut gateway, START).is_shared {
        gateway.reserve(others.next().unwrap(), START);
    }
    (0..LIMIT - 2).for_each(|_| _ = gateway.reserve(1, START));
    assert_eq!(gateway.store.usage(key(1).into(), true, START), Err(OrderError::Shared));
    // By then, the charges of the other callers have expired.
    let later = at(2);
    let known = usage(&mut gateway, later);
    assert!(!known.is_shared && known.remaining < LIMIT, "{known:?}");
    assert!(gateway.store.usage(key(1).into(), true, later).is_ok());
    assert_eq!(gateway.left(1, later), LIMIT);
}
