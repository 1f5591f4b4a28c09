//! A worker's knowledge of a caller without the gateway, and its lifetime.

use diana_policy::time::{SECOND, Unit};
use diana_policy::{Quota, Scope};
use diana_store::stores;
use kit::store::gateway::{START, key};
use kit::store::{Decided, Take};

use crate::support::gateway::{Gateway, MS, OFTEN, day};

/// The cause may be a charge that another rule cancelled.
#[test]
fn refusal_with_other_rules_expires_soon() {
    for (may_be_cancelled, again) in [(true, 20 * MS), (false, SECOND)] {
        let mut gateway = Gateway::new("W", day(1), may_be_cancelled);
        let mut taken = gateway.check(1, 0);
        assert!(gateway.workers[1].charged(&mut taken, 0).is_admitted());
        assert!(!gateway.take(0, 0));
        gateway.workers[1].cancel(&mut taken);
        assert!(!gateway.take(0, again - 1), "it is remembered, {may_be_cancelled}");
        assert!(gateway.take(0, again), "{may_be_cancelled}");
    }
}

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

/// A lease of a window that has ended counts as outstanding until its return, together with leases
/// of the next window in the same lease term.
#[test]
fn lease_of_the_last_window_stays_distinct() {
    let mut gateway = Gateway::new("W", Quota::new(Unit::Second, 1000), false);
    gateway.start.mono += 50 * MS;
    gateway.take_block(0, 990 * MS);
    assert!(gateway.take(1, SECOND));
    gateway.take_block(1, 1010 * MS);
    gateway.workers[0].maintain(gateway.start.later(1020 * MS));
    gateway.flood(0, 1030 * MS);
    assert!(gateway.check(0, 1030 * MS).is_outstanding(), "the other worker holds what is left");
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

#[test]
fn lease_reports_exact_remaining_permits() {
    let mut gateway = Gateway::new("W", day(1000), false);
    gateway.take_block(0, 0);
    for taken in OFTEN..OFTEN + 20 {
        let mut reservation = gateway.check(0, 0);
        assert_eq!(gateway.remaining(0, &reservation), Some(1000 - taken));
        gateway.workers[0].charged(&mut reservation, 0);
        assert_eq!(gateway.remaining(0, &reservation), Some(1000 - taken - 1));
    }
}

/// A lease counts in its lease term and in the next one, even if other charges follow.
#[test]
fn lease_is_outstanding_until_the_next_term_ends() {
    for again in [0, 2500 * MS] {
        let mut gateway = Gateway::new("W", day(1000), false);
        if again > 0 {
            // A returned lease leaves no state behind.
            gateway.take_block(1, 0);
            gateway.workers[1].close(START);
        }
        gateway.take_block(0, again);
        assert!(gateway.take(1, again + 500 * MS));
        assert!(gateway.flood(1, again + 750 * MS) > 800);
        assert!(gateway.check(1, again + SECOND - 21 * MS).is_outstanding(), "{again}");
        let late = gateway.check(1, again + SECOND);
        assert!(!late.decision().is_admitted());
        assert!(!late.is_outstanding(), "it was not given back: {again}");
    }
}

/// The worker does not spend its earlier leases. They count as outstanding until it returns them.
#[test]
fn leases_of_a_stalled_worker_stay_outstanding() {
    for (short, begins) in
        ["W", "SW", "TB"].into_iter().flat_map(|it| [0, 250, 499].map(|ms| (it, ms * MS)))
    {
        let mut gateway = Gateway::new(short, day(1000), false);
        gateway.take_block(0, begins);
        let used = OFTEN + gateway.flood(1, begins);
        for still in [100, 200, 300, 400, 470] {
            let refused = gateway.check(1, begins + still * MS);
            assert!(refused.is_outstanding(), "{short}, from {begins} on, after {still} ms");
        }
        gateway.workers[0].maintain(gateway.start.later(begins + 499 * MS));
        assert_eq!(used + gateway.flood(1, begins + 499 * MS), 1000, "{short}, from {begins} on");
    }
}

/// A worker with a slow clock finds leases later than its clock.
#[test]
fn worker_may_be_a_minute_late() {
    let mut gateway = Gateway::new("W", day(1000), false);
    gateway.take_block(0, 80 * SECOND);
    gateway.flood(1, 20 * SECOND);
    assert!(gateway.check(1, 20 * SECOND).is_outstanding());
}

/// A request of the same cost is refused without a read; a cheaper one may fit.
#[test]
fn cached_refusal_applies_to_equal_or_higher_cost() {
    let mut gateway = Gateway::new("W", Quota::new(Unit::Day, 10), false);
    let check = |gateway: &mut Gateway, cost: u64, ticks: u64| {
        gateway.cost = cost;
        let before = gateway.data.reads.get();
        let is_admitted = gateway.check(0, ticks).decision().is_admitted();
        (is_admitted, gateway.data.reads.get() - before)
    };
    gateway.cost = 6;
    assert!(gateway.take(0, 0));
    assert_eq!(check(&mut gateway, 5, 1), (false, 1));
    assert_eq!(check(&mut gateway, 5, 2), (false, 0), "it is remembered");
    assert_eq!(check(&mut gateway, 9, 3), (false, 0), "it takes more");
    assert_eq!(check(&mut gateway, 4, 4), (true, 1), "it takes less, and fits");
    assert_eq!(check(&mut gateway, 10, 2 * SECOND), (false, 1), "not for ever");
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
