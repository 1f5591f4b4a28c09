//! Daily quotas of many accounts in fixed memory.

mod chance;
mod changes;
mod charges;
mod midnight;

use std::rc::Rc;

use diana_policy::bloom::Shape;
use diana_policy::key::{Key, KeyHasher, Seed};
use diana_policy::time::{Now, SECOND, Unit};
use diana_policy::{Quota, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{CounterSpec, Store};
use kit::fake::FakeSharedData;
use kit::store::{Decided, Take};

use kit::store::rule::Rule;

const DAY: u64 = Unit::Day.micros();

/// A time in the morning.
const START: Now = Now { mono: 1_000 * SECOND, wall: 20_000 * DAY + 8 * 3600 * SECOND };

/// A quota of `rpu` permits per day.
fn by_day(rpu: u64) -> Quota {
    Quota::new(Unit::Day, rpu)
}

/// A store for this number of accounts, with a probability of an early refusal in millionths.
fn open(quota: Quota, accounts: u64, error: u64, tables: &mut Tables) -> Box<dyn Store> {
    let shape = Shape::new(accounts, error, quota.rpu / quota.cost);
    let spec = CounterSpec { daily: Some(shape), ..Rule::new("W", quota).spec(1) };
    let mut stores = Stores::new("ns".into(), Rc::new(FakeSharedData::default()), tables);
    stores.open(Scope::Local, spec)
}

fn key(account: u64) -> Key {
    let mut hasher = KeyHasher::new(&Seed { k0: 5, k1: 6 });
    hasher.part(0, &account.to_le_bytes());
    hasher.finish()
}

fn admits(store: &mut dyn Store, account: u64, now: Now) -> bool {
    admits_of(store, account, 1, now)
}

/// Returns true if a request of this cost is admitted.
fn admits_of(store: &mut dyn Store, account: u64, cost: u64, now: Now) -> bool {
    let mut reservation = store.checked(key(account).into(), cost, now);
    reservation.decision().is_admitted() && store.charged(&mut reservation, 0).is_admitted()
}

/// The incremental gauge of a worker is always right, and returns to its initial value in the end.
#[test]
fn account_gauge_returns_to_zero() {
    for ends in [DAY / 2, DAY] {
        let mut store = open(by_day(5), 1_000, 100, &mut Tables::default());
        let mut keys = 0;
        for account in [1, 2, 1, 3, 4, 4] {
            assert!(admits(&mut *store, account, START));
            keys += store.maintain(START).keys;
        }
        assert_eq!(keys, 4);
        // All of them expire with the day.
        keys += store.maintain(START.later(ends)).keys;
        assert_eq!(keys, if ends < DAY { 4 } else { 0 });
        assert_eq!(keys + store.close(START.later(ends)), 0);
    }
}
