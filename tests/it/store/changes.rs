//! Several configurations that count by the same rule at once, as while an old one drains.

use std::rc::Rc;

use diana_policy::key::Key;
use diana_policy::time::{SECOND, Unit};
use diana_policy::{Quota, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use diana_store::{CounterSpec, Store};
use fastrand::Rng;

use super::races::{gap, interrupted, rounds};
use kit::fake::FakeSharedData;
use kit::oracle::oracle;
use kit::store::Take;
use kit::store::gateway::{Gateway, START, open};
use kit::store::rule::Rule;

/// The same rule with another quota.
fn changed(rule: &Rule, rng: &mut Rng) -> Rule {
    let scaled = |permits: u64, rng: &mut Rng| (permits * rng.u64(1..5) / 2).max(1);
    loop {
        let quota = Quota {
            rpu: scaled(rule.quota.rpu, rng),
            burst: rule.quota.burst.map(|burst| scaled(burst, rng)),
            cost: scaled(rule.quota.cost, rng),
            ..rule.quota
        };
        if let Some(rule) = Rule::try_new(rule.short, quota) {
            return rule;
        }
    }
}

/// A rule that allows at least as much as both rules.
fn either(a: &Rule, b: &Rule) -> Rule {
    let oracle = oracle(a.short);
    let burst = oracle.burst(&a.quota).max(oracle.burst(&b.quota));
    let quota = Quota {
        rpu: a.quota.rpu.max(b.quota.rpu),
        burst: oracle.drains().then_some(burst),
        cost: 1,
        ..a.quota
    };
    Rule::new(a.short, quota)
}

#[test]
fn two_configurations_admit_no_more_than_one() {
    rounds(300, |rule, rng| {
        let Quota { rpu, warm_up, .. } = rule.quota;
        // With held requests, turns are further apart under one of the rules.
        if rule.queues() || warm_up.is_some() || rpu == 0 || rpu > 1_000_000 {
            return;
        }
        let other = changed(&rule, rng);
        println!("and {:?}", other.quota);
        let largest = either(&rule, &other);
        let mut gateway = Gateway::new(rule, 1000, 2);
        let (other, keys) = (Rc::new(other), 1 << rng.u8(0..20));
        (0..2).for_each(|_| gateway.join(other.clone(), keys));
        let gateway = Rc::new(gateway);
        let callers = rng.u64(1..40);
        interrupted(&gateway, rng, move |gateway, worker, act, rng| match act {
            0 => gateway.crash(worker),
            1 => _ = gateway.maintain(worker),
            _ => _ = gateway.request(worker, rng.u64(0..callers)),
        });
        for _ in 0..300 {
            gateway.wait(gap(&gateway.rule, rng));
            gateway.request(rng.usize(0..gateway.workers()), rng.u64(0..callers));
        }
        for caller in gateway.callers() {
            largest.verify(&gateway.past(caller));
        }
    });
}

#[test]
fn usage_survives_changed_quota_and_keys() {
    for keys in [1, 16, 1000, 1_000_000] {
        for short in ["W", "SW", "TB"] {
            let day = |rpu| Rule::new(short, Quota::new(Unit::Day, rpu));
            let mut gateway = Gateway::new(day(10), 1000, 1);
            for caller in 0..5 {
                assert!((0..7).all(|_| gateway.request(0, caller).unwrap().is_admitted()));
            }
            gateway.close();
            gateway.join(Rc::new(day(12)), keys);
            for caller in 0..5 {
                let more = (0..20).filter(|_| gateway.request(1, caller).unwrap().is_admitted());
                assert_eq!(more.count(), 5, "{short} with {keys} keys");
            }
        }
    }
}

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
fn worker_with_a_late_clock_gains_no_permits() {
    for short in ["W", "SW", "TB"] {
        let gateway = Gateway::new(Rule::new(short, Quota::new(Unit::Second, 100)), 100, 2);
        let start = gateway.clock.get();
        let mut given = 0;
        for request in 0..400 {
            // The other worker's clock is up to half a second late.
            let behind = if request % 2 == 0 { 0 } else { SECOND / 2 };
            let now = start.later(SECOND / 2 + request * 100 - behind);
            gateway.clock.set(now);
            let worker = (request % 2) as usize;
            given += u64::from(gateway.request(worker, 1).unwrap().is_admitted());
        }
        // In this time a bucket regains four permits.
        assert!((100..=104).contains(&given), "{short}: {given}");
    }
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
