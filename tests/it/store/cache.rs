//! A worker's knowledge of a caller without the gateway, and its lifetime.

use diana_policy::Scope;
use diana_policy::time::SECOND;
use diana_store::stores;
use kit::store::gateway::{START, key};
use kit::store::{Decided, Take};

use crate::support::gateway::{Gateway, MS, OFTEN, day};

#[test]
fn closed_store_has_no_cached_refusal() {
    let mut gateway = Gateway::new("W", day(1), false);
    let mut taken = gateway.check(1, 0);
    assert!(gateway.workers[1].charged(&mut taken, 0).is_admitted());
    assert!(!gateway.take(0, 0));
    gateway.workers[1].cancel(&mut taken);
    gateway.workers[0].close(START);
    assert!(gateway.take(0, 1), "the refusal was forgotten");
}

/// A caller is busy after twenty requests within one to two spans, at any offset to a span. The first
/// request is not counted, since its caller is unknown.
#[test]
fn only_busy_callers_get_a_lease() {
    for (first, then, at, lends) in [
        (20, 0, 0, false),
        (21, 0, 0, true),
        (15, 5, 150 * MS, false),
        (15, 6, 150 * MS, true),
        (15, 15, 200 * MS, false),
    ] {
        let mut gateway = Gateway::new("W", day(100_000), false);
        assert!((0..first).all(|_| gateway.take(0, 0)));
        assert!((0..then).all(|_| gateway.take(0, at)));
        let reservation = gateway.check(1, at);
        let left = gateway.remaining(1, &reservation).unwrap();
        assert_eq!(left < 100_000 - first - then, lends, "{first}, and {then} at {at}");
    }
}

/// A sudden flood is expected to continue.
#[test]
fn first_lease_is_sized_by_demand() {
    let mut gateway = Gateway::new("W", day(100_000), false);
    assert!((0..21).all(|_| gateway.take(0, 0)));
    let reservation = gateway.check(1, 0);
    let out = 100_000 - 21 - gateway.remaining(1, &reservation).unwrap();
    // Demand is measured over an eightieth of a second, the minimum, for a fiftieth of a second.
    assert_eq!(out, 20 * 80 / 50);
}

/// No call of the host takes long, however many leases are idle.
#[test]
fn leases_are_returned_in_portions() {
    let mut gateway = Gateway::new("W", day(1000), false);
    let now = START;
    let mut out = 0;
    for caller in 0..4000 {
        gateway.caller = key(caller);
        gateway.take_block(0, 0);
        let reservation = gateway.workers[1].checked(key(caller).into(), 1, now);
        out += usize::from(gateway.remaining(1, &reservation) < Some(1000 - OFTEN));
    }
    assert!(out > 1100, "callers share lines: {out}");
    let mut portions = Vec::new();
    for _ in 0..8 {
        let before = gateway.data.writes.get();
        gateway.workers[0].maintain(now.later(60 * MS));
        portions.push(gateway.data.writes.get() - before);
    }
    assert_eq!(portions[0], 1024);
    assert_eq!(portions.iter().sum::<u64>(), out as u64);
}

/// Only up to the maximum number of remembered callers.
#[test]
fn lease_memory_is_proportional_to_keys() {
    let of = |keys| stores::memory(Scope::Gateway, 1, Some(keys), 1).worker;
    assert!((100..=1000).contains(&of(1)), "{}", of(1));
    assert_eq!(of(4096), 4096 * of(1));
    assert_eq!(of(100_000), of(4096));
    // A rule that counts all callers together needs no overflow buckets.
    let shared = |callers| stores::memory(Scope::Gateway, 1, callers, 1).shared;
    assert!(10 * shared(None) < shared(Some(1)));
}

/// A known caller costs one read, and a new caller another one: the number of slots.
#[test]
fn only_new_callers_read_the_number_of_slots() {
    let mut gateway = Gateway::new("W", day(1000), false);
    assert!(gateway.take(0, 0));
    for asks in [1, 1] {
        let before = gateway.data.reads.get();
        gateway.check(1, 0);
        assert_eq!(gateway.data.reads.get() - before, asks);
    }
    gateway.caller = key(2);
    let before = gateway.data.reads.get();
    gateway.check(1, 0);
    assert_eq!(gateway.data.reads.get() - before, 2);
}

/// A worker with a slow clock finds leases later than its clock.
#[test]
fn worker_may_be_a_minute_late() {
    let mut gateway = Gateway::new("W", day(1000), false);
    gateway.take_block(0, 80 * SECOND);
    gateway.flood(1, 20 * SECOND);
    assert!(gateway.check(1, 20 * SECOND).is_outstanding());
}

/// Shared data was lost, and other callers use the slot. The leased permits were not taken from the
/// bucket that the caller now shares.
#[test]
fn lease_is_not_returned_to_a_shared_bucket() {
    let mut gateway = Gateway::of(16, "W", day(1000), false);
    let caller = gateway.caller;
    gateway.take_block(0, 0);
    gateway.data.data.clear();
    for other in 2..34 {
        gateway.caller = key(other);
        assert!(gateway.take(1, 0));
    }
    gateway.caller = caller;
    assert!((0..10).all(|_| gateway.take(1, 0)));
    let reservation = gateway.check(0, 0);
    assert_eq!(gateway.remaining(0, &reservation), Some(990));
}
