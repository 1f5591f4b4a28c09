//! More callers than the tables have room for.

use std::rc::Rc;

use diana_policy::time::{SECOND, Unit};
use diana_policy::{Quota, Scope};
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use kit::fake::FakeSharedData;
use kit::store::{Decided, Take};

use super::races::{gap, rounds};
use kit::store::gateway::{Gateway, START, interrupt, key, open};
use kit::store::rule::Rule;

#[test]
fn moving_between_bucket_and_slot_gains_no_permits() {
    let mut overflowed = 0;
    rounds(100, |rule, rng| {
        let keys = rng.usize(1..40);
        let gateway = Rc::new(Gateway::new(rule, keys, rng.usize(1..5)));
        let (few, many) = (rng.u64(1..6), rng.u64(30..200));
        let often = rng.u8(1..9);
        // Some callers return often, and many come once.
        let caller = move |rng: &mut fastrand::Rng| {
            if rng.bool() { rng.u64(0..few) } else { rng.u64(0..many) }
        };
        interrupt(&gateway, rng.fork(), move |gateway, rng| {
            if rng.u8(0..often) == 0 {
                let worker = rng.usize(0..gateway.workers());
                match rng.u8(0..16) {
                    0 => _ = gateway.maintain(worker),
                    1 => gateway.crash(worker),
                    _ => _ = gateway.request(worker, caller(rng)),
                }
            }
        });
        for _ in 0..500 {
            if rng.u8(0..4) == 0 {
                gateway.wait(gap(&gateway.rule, rng));
            }
            gateway.request(rng.usize(0..gateway.workers()), caller(rng));
        }
        overflowed += gateway.overflowed.get();
        gateway.verify();
    });
    assert!(overflowed > 1000, "the crowd never filled the slots");
}

#[test]
fn expired_callers_make_room_first() {
    let gateway = Gateway::new(Rule::new("W", Quota::new(Unit::Second, 2)), 16, 1);
    let mut worker = open(&gateway.rule, 16, gateway.data.clone());
    let mut request = |caller: u64| {
        let mut reservation = worker.store.checked(key(caller).into(), 1, gateway.clock.get());
        let overflow = reservation.is_overflow;
        let admitted = reservation.decision().is_admitted();
        (admitted && worker.store.charged(&mut reservation, 0).is_admitted(), overflow)
    };
    for caller in 0..32 {
        assert_eq!(request(caller), (true, false));
    }
    // No room: the new caller shares a bucket, with at most its own limit there.
    assert_eq!(request(100), (true, true));
    assert_eq!(request(100), (true, true));
    assert_eq!(request(100), (false, true));
    // A known caller keeps its row.
    assert_eq!(request(31), (true, false));
    assert_eq!(request(31), (false, false));
    gateway.clock.set(gateway.clock.get().later(SECOND));
    for caller in 200..232 {
        assert_eq!(request(caller), (true, false));
    }
    assert_eq!(request(232), (true, true));
}

#[test]
fn charge_of_a_bucket_is_cancelled_in_the_bucket() {
    // Some of these callers expire after half a second. A worker drops only a few at a time.
    for (scope, callers, later) in [(Scope::Local, 1000, SECOND / 2), (Scope::Gateway, 2000, 0)] {
        let rule = Rule::new("TB", Quota::new(Unit::Second, 10));
        let mut tables = Tables::default();
        let data = Rc::new(FakeSharedData::default());
        let mut store = Stores::new("test".into(), data, &mut tables).open(scope, rule.spec(1000));
        for caller in 0..callers {
            let uses = if caller < 600 { 10 } else { 1 };
            for _ in 0..uses {
                let mut reservation = store.checked(key(caller).into(), 1, START);
                if !reservation.is_overflow {
                    store.charged(&mut reservation, 0);
                }
            }
        }
        let now = START.later(later);
        let mut callers = 5000..100_000;
        let mut requests =
            callers.by_ref().map(|caller| (caller, store.checked(key(caller).into(), 1, now)));
        let (newcomer, mut reservation) =
            requests.find(|(_, reservation)| reservation.is_overflow).unwrap();
        drop(requests);
        let same_bucket = |caller: &u64| {
            let (one, other) = (key(*caller), key(newcomer));
            let bits = if scope == Scope::Local {
                one.second_hash ^ other.second_hash
            } else {
                one.hash ^ other.hash
            };
            bits % 1024 == 0 && *caller != newcomer
        };
        let neighbour = callers.find(same_bucket).unwrap();
        assert!(store.charged(&mut reservation, 0).is_admitted());
        store.cancel(&mut reservation);
        let reservation = store.checked(key(neighbour).into(), 1, now);
        assert_eq!(store.remaining(&reservation).map(|it| it.permits), Some(10), "{scope:?}");
    }
}

#[test]
fn lease_of_a_dead_worker_expires_and_makes_room() {
    let rule = Rule::new("TB", Quota { burst: Some(100), ..Quota::new(Unit::Second, 100) });
    let gateway = Gateway::new(rule, 16, 1);
    for caller in 0..32 {
        // Twice at once: enough for a lease.
        assert!((0..5).all(|_| gateway.request(0, caller).unwrap().is_admitted()));
    }
    gateway.crash(0);
    gateway.clock.set(gateway.clock.get().later(10 * SECOND));
    for caller in 100..132 {
        gateway.request(0, caller);
    }
    assert_eq!(gateway.overflowed.get(), 0);
}

/// After all charges of buckets have expired, only a new caller's slot is read.
#[test]
fn expired_bucket_is_not_read() {
    for (at, reads) in [(60 * SECOND - 1, 2), (60 * SECOND, 1)] {
        let gateway = Gateway::new(Rule::new("W", Quota::new(Unit::Minute, 10)), 16, 1);
        (0..33).for_each(|caller| assert!(gateway.admits(caller)));
        assert_eq!(gateway.overflowed.get(), 1);
        gateway.at(at);
        let before = gateway.asked.get();
        assert!(gateway.admits(100));
        assert_eq!(gateway.asked.get() - before, reads, "at {at}");
    }
}
