//! Several configurations that count by the same rule at once, as while an old one drains.

use std::rc::Rc;

use diana_policy::key::Key;
use diana_policy::time::Unit;
use diana_policy::{Quota, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{CounterSpec, Store};

use kit::fake::FakeSharedData;
use kit::store::Take;
use kit::store::gateway::{Gateway, START, open};
use kit::store::rule::Rule;

#[test]
fn more_keys_hold_more_callers() {
    let rule = Rule::new("W", Quota::new(Unit::Day, 10));
    let mut gateway = Gateway::new(rule, 16, 1);
    (0..40).for_each(|caller| _ = gateway.request(0, caller));
    assert_eq!(gateway.overflowed.get(), 8);
    gateway.join(gateway.rule.clone(), 100);
    (0..100).for_each(|caller| _ = gateway.request(1, caller));
    assert_eq!(gateway.overflowed.get(), 8);
    // The old configuration finds all of them.
    (0..100).for_each(|caller| _ = gateway.request(0, caller));
    assert_eq!(gateway.overflowed.get(), 8);
    (100..110).for_each(|caller| _ = gateway.request(0, caller));
    assert_eq!(gateway.overflowed.get(), 18);
}

#[test]
fn rule_changed_from_all_to_each_caller_has_room() {
    let rule = || Rule::new("W", Quota::new(Unit::Day, 10));
    let mut gateway = Gateway::new(rule(), 1, 1);
    let mut everybody = open(&gateway.rule, 1, gateway.data.clone());
    assert!(everybody.store.take(Key::ALL, 1, gateway.clock.get()).is_none());
    gateway.join(Rc::new(rule()), 1000);
    (0..1000).for_each(|caller| _ = gateway.request(1, caller));
    assert_eq!(gateway.overflowed.get(), 0);
}

/// A host that returns to an earlier configuration, while that one still drains, does not report
/// it.
#[test]
fn store_used_again_applies_its_own_quota() {
    let mut tables = Tables::default();
    let mut open = |quota, keys| {
        let spec = CounterSpec { fingerprint: 1, ..Rule::new("TB", quota).spec(keys) };
        let data = Rc::<FakeSharedData>::default();
        Stores::new("test".into(), data, &mut tables).open(Scope::Local, spec)
    };
    let few = Quota { burst: Some(5), ..Quota::new(Unit::Hour, 5) };
    let many = Quota { burst: Some(1_000), ..Quota::new(Unit::Hour, 3_600_000) };
    let mut earlier = open(few, 4);
    let caller = |hash| Key { hash, second_hash: hash };
    let take = |store: &mut Box<dyn Store>, hash| store.take(caller(hash), 1, START).is_none();
    assert!((0..5).all(|_| take(&mut earlier, 1)) && (2..5).all(|hash| take(&mut earlier, hash)));
    // The later one replaces it, and is then closed.
    let mut later = open(many, 100_000);
    assert!(take(&mut later, 1));
    let newcomers = (5..200).filter(|hash| take(&mut earlier, *hash)).count();
    assert_eq!(newcomers, 0, "they share buckets");
    assert_eq!(earlier.maintain(START).keys + later.maintain(START).keys, 4);
    assert!(!take(&mut earlier, 1), "she has used all that she may");
}
