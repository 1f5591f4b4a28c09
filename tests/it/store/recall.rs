//! A worker's knowledge of a caller without the gateway, and its lifetime.

use diana_policy::time::{SECOND, Unit};
use diana_policy::{Quota, Scope};
use diana_store::stores;
use kit::store::Take;
use kit::store::gateway::{START, key};

use super::office::{MS, OFTEN, Office, day};

/// The cause may be a charge that another rule cancelled.
#[test]
fn refusal_with_other_rules_expires_soon() {
    for (may_be_cancelled, again) in [(true, 20 * MS), (false, SECOND)] {
        let mut office = Office::new("W", day(1), may_be_cancelled);
        let mut taken = office.check(1, 0);
        assert!(office.workers[1].charge(&mut taken, 0).is_admitted());
        assert!(!office.take(0, 0));
        office.workers[1].cancel(&mut taken);
        assert!(!office.take(0, again - 1), "it is remembered, {may_be_cancelled}");
        assert!(office.take(0, again), "{may_be_cancelled}");
    }
}

#[test]
fn closed_store_has_no_cached_refusal() {
    let mut office = Office::new("W", day(1), false);
    let mut taken = office.check(1, 0);
    assert!(office.workers[1].charge(&mut taken, 0).is_admitted());
    assert!(!office.take(0, 0));
    office.workers[1].cancel(&mut taken);
    office.workers[0].close(START);
    assert!(office.take(0, 1), "the refusal was forgotten");
}

/// A caller is busy from twenty requests in one to two spans on, wherever a span begins. The first
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
        let mut office = Office::new("W", day(100_000), false);
        assert!((0..first).all(|_| office.take(0, 0)));
        assert!((0..then).all(|_| office.take(0, at)));
        let reservation = office.check(1, at);
        let left = office.remaining(1, &reservation).unwrap();
        assert_eq!(left < 100_000 - first - then, lends, "{first}, and {then} at {at}");
    }
}

/// A sudden flood is expected to continue.
#[test]
fn first_lease_is_sized_by_demand() {
    let mut office = Office::new("W", day(100_000), false);
    assert!((0..21).all(|_| office.take(0, 0)));
    let reservation = office.check(1, 0);
    let out = 100_000 - 21 - office.remaining(1, &reservation).unwrap();
    // Demand is measured over an eightieth of a second, the minimum, for a fiftieth of a second.
    assert_eq!(out, 20 * 80 / 50);
}

/// No call of the host takes long, however many leases are idle.
#[test]
fn leases_are_returned_in_portions() {
    let mut office = Office::new("W", day(1000), false);
    let now = START;
    let mut out = 0;
    for caller in 0..4000 {
        office.ann = key(caller);
        office.take_block(0, 0);
        let reservation = office.workers[1].checked(key(caller).into(), 1, now);
        out += usize::from(office.remaining(1, &reservation) < Some(1000 - OFTEN));
    }
    assert!(out > 1100, "callers share lines: {out}");
    let mut portions = Vec::new();
    for _ in 0..8 {
        let before = office.data.writes.get();
        office.workers[0].maintain(now.later(60 * MS));
        portions.push(office.data.writes.get() - before);
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
    let mut office = Office::new("W", Quota::new(Unit::Second, 1000), false);
    office.start.mono += 50 * MS;
    office.take_block(0, 990 * MS);
    assert!(office.take(1, SECOND));
    office.take_block(1, 1010 * MS);
    office.workers[0].maintain(office.start.later(1020 * MS));
    office.flood(0, 1030 * MS);
    assert!(office.check(0, 1030 * MS).is_outstanding(), "the other worker holds what is left");
}

/// A known caller costs one read, and a new caller another one: the number of slots.
#[test]
fn only_new_callers_read_the_number_of_slots() {
    let mut office = Office::new("W", day(1000), false);
    assert!(office.take(0, 0));
    for asks in [1, 1] {
        let before = office.data.reads.get();
        office.check(1, 0);
        assert_eq!(office.data.reads.get() - before, asks);
    }
    office.ann = key(2);
    let before = office.data.reads.get();
    office.check(1, 0);
    assert_eq!(office.data.reads.get() - before, 2);
}

#[test]
fn lease_reports_exact_remaining_permits() {
    let mut office = Office::new("W", day(1000), false);
    office.take_block(0, 0);
    for taken in OFTEN..OFTEN + 20 {
        let mut reservation = office.check(0, 0);
        assert_eq!(office.remaining(0, &reservation), Some(1000 - taken));
        office.workers[0].charge(&mut reservation, 0);
        assert_eq!(office.remaining(0, &reservation), Some(1000 - taken - 1));
    }
}

/// A lease counts in its lease term and in the next one, even if other charges follow.
#[test]
fn lease_is_outstanding_until_the_next_term_ends() {
    for again in [0, 2500 * MS] {
        let mut office = Office::new("W", day(1000), false);
        if again > 0 {
            // A returned lease leaves no state behind.
            office.take_block(1, 0);
            office.workers[1].close(START);
        }
        office.take_block(0, again);
        assert!(office.take(1, again + 500 * MS));
        assert!(office.flood(1, again + 750 * MS) > 800);
        assert!(office.check(1, again + SECOND - 21 * MS).is_outstanding(), "{again}");
        let late = office.check(1, again + SECOND);
        assert!(!late.decision.is_admitted());
        assert!(!late.is_outstanding(), "it was not given back: {again}");
    }
}

/// The worker does not spend its earlier leases. They count as outstanding until it returns them.
#[test]
fn leases_of_a_stalled_worker_stay_outstanding() {
    for (short, begins) in
        ["W", "SW", "TB"].into_iter().flat_map(|it| [0, 250, 499].map(|ms| (it, ms * MS)))
    {
        let mut office = Office::new(short, day(1000), false);
        office.take_block(0, begins);
        let used = OFTEN + office.flood(1, begins);
        for still in [100, 200, 300, 400, 470] {
            let refused = office.check(1, begins + still * MS);
            assert!(refused.is_outstanding(), "{short}, from {begins} on, after {still} ms");
        }
        office.workers[0].maintain(office.start.later(begins + 499 * MS));
        assert_eq!(used + office.flood(1, begins + 499 * MS), 1000, "{short}, from {begins} on");
    }
}

/// A worker with a slow clock finds leases later than its clock.
#[test]
fn worker_may_be_a_minute_late() {
    let mut office = Office::new("W", day(1000), false);
    office.take_block(0, 80 * SECOND);
    office.flood(1, 20 * SECOND);
    assert!(office.check(1, 20 * SECOND).is_outstanding());
}

/// A request of the same cost is refused without a read; a cheaper one may fit.
#[test]
fn cached_refusal_applies_to_equal_or_higher_cost() {
    let mut office = Office::new("W", Quota::new(Unit::Day, 10), false);
    let check = |office: &mut Office, cost: u64, ticks: u64| {
        office.cost = cost;
        let before = office.data.reads.get();
        let is_admitted = office.check(0, ticks).decision.is_admitted();
        (is_admitted, office.data.reads.get() - before)
    };
    office.cost = 6;
    assert!(office.take(0, 0));
    assert_eq!(check(&mut office, 5, 1), (false, 1));
    assert_eq!(check(&mut office, 5, 2), (false, 0), "it is remembered");
    assert_eq!(check(&mut office, 9, 3), (false, 0), "it takes more");
    assert_eq!(check(&mut office, 4, 4), (true, 1), "it takes less, and fits");
    assert_eq!(check(&mut office, 10, 2 * SECOND), (false, 1), "not for ever");
}

/// Shared data was lost, and other callers use the slot. The leased permits were not taken from the
/// bucket that the caller now shares.
#[test]
fn lease_is_not_returned_to_a_shared_bucket() {
    let mut office = Office::of(16, "W", day(1000), false);
    let ann = office.ann;
    office.take_block(0, 0);
    office.data.data.clear();
    for other in 2..34 {
        office.ann = key(other);
        assert!(office.take(1, 0));
    }
    office.ann = ann;
    assert!((0..10).all(|_| office.take(1, 0)));
    let reservation = office.check(0, 0);
    assert_eq!(office.remaining(0, &reservation), Some(990));
}
