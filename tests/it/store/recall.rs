//! What a worker knows of a caller without asking the gateway, and for how long.

use diana_policy::time::{SECOND, Unit};
use diana_policy::{Quota, Scope};
use diana_store::stores;
use kit::store::gateway::{START, key};

use super::office::{MS, OFTEN, Office, day};

/// It may have come of a charge that another rule had taken back.
#[test]
fn a_refusal_beside_other_rules_is_asked_about_anew_soon() {
    for (beside, again) in [(true, 20 * MS), (false, SECOND)] {
        let mut office = Office::new("W", day(1), beside);
        let mut taken = office.check(1, 0);
        assert!(office.workers[1].charge(&mut taken, 0).is_admitted());
        assert!(!office.take(0, 0));
        office.workers[1].undo(&mut taken);
        assert!(!office.take(0, again - 1), "it is remembered, {beside}");
        assert!(office.take(0, again), "{beside}");
    }
}

#[test]
fn a_closed_store_knows_nobody() {
    let mut office = Office::new("W", day(1), false);
    let mut taken = office.check(1, 0);
    assert!(office.workers[1].charge(&mut taken, 0).is_admitted());
    assert!(!office.take(0, 0));
    office.workers[1].undo(&mut taken);
    office.workers[0].close(START);
    assert!(office.take(0, 1), "the refusal was forgotten");
}

/// Twenty requests in one to two tenths of a second make a caller who comes often, wherever a tenth begins. The
/// first of all is not counted: nothing is known of its caller yet.
#[test]
fn a_block_is_for_whoever_comes_often() {
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
        let left = office.workers[1].remaining(&reservation).unwrap();
        assert_eq!(left < 100_000 - first - then, lends, "{first}, and {then} at {at}");
    }
}

/// Whoever comes all at once will go on like that, as far as can be told.
#[test]
fn the_first_block_is_sized_by_the_pace_so_far() {
    let mut office = Office::new("W", day(100_000), false);
    assert!((0..21).all(|_| office.take(0, 0)));
    let reservation = office.check(1, 0);
    let out = 100_000 - 21 - office.workers[1].remaining(&reservation).unwrap();
    // Of the next fiftieth of a second, as in an eightieth, the shortest time that a pace is measured over.
    assert_eq!(out, 20 * 80 / 50);
}

/// No call of the host takes long, however many are idle.
#[test]
fn blocks_go_back_in_portions() {
    let mut office = Office::new("W", day(1000), false);
    let now = START;
    let mut out = 0;
    for caller in 0..4000 {
        office.ann = key(caller);
        office.take_block(0, 0);
        let reservation = office.workers[1].check(key(caller), 1, now);
        out += usize::from(office.workers[1].remaining(&reservation) < Some(1000 - OFTEN));
    }
    assert!(out > 1100, "callers share lines: {out}");
    let mut portions = Vec::new();
    for _ in 0..8 {
        let before = office.data.writes.get();
        office.workers[0].tidy(now.later(60 * MS));
        portions.push(office.data.writes.get() - before);
    }
    assert_eq!(portions[0], 1024);
    assert_eq!(portions.iter().sum::<u64>(), out as u64);
}

/// As far as a worker remembers callers at all.
#[test]
fn the_memory_for_leases_is_in_proportion_to_the_callers() {
    let of = |keys| stores::memory(Scope::Gateway, 1, Some(keys), 1).worker;
    assert!((100..=1000).contains(&of(1)), "{}", of(1));
    assert_eq!(of(4096), 4096 * of(1));
    assert_eq!(of(100_000), of(4096));
    // Nobody shares a bucket of a rule for everybody.
    let shared = |callers| stores::memory(Scope::Gateway, 1, callers, 1).shared;
    assert!(10 * shared(None) < shared(Some(1)));
}

/// What was lent of a window that is over still counts as out until it is back, beside what is lent of the next one
/// in the same term.
#[test]
fn a_lease_of_the_last_window_is_not_taken_for_one_of_this_window() {
    let mut office = Office::new("W", Quota::new(Unit::Second, 1000), false);
    office.start.mono += 50 * MS;
    office.take_block(0, 990 * MS);
    assert!(office.take(1, SECOND));
    office.take_block(1, 1010 * MS);
    office.workers[0].tidy(office.start.later(1020 * MS));
    office.flood(0, 1030 * MS);
    assert!(office.check(0, 1030 * MS).is_outstanding(), "the other worker holds what is left");
}

/// A caller who is known costs one question, and a newcomer one more: how many slots there are.
#[test]
fn how_many_slots_there_are_is_asked_about_newcomers_only() {
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
fn what_is_left_is_told_as_it_is_by_a_lease_too() {
    let mut office = Office::new("W", day(1000), false);
    office.take_block(0, 0);
    for taken in OFTEN..OFTEN + 20 {
        let mut reservation = office.check(0, 0);
        assert_eq!(office.workers[0].remaining(&reservation), Some(1000 - taken));
        office.workers[0].charge(&mut reservation, 0);
        assert_eq!(office.workers[0].remaining(&reservation), Some(1000 - taken - 1));
    }
}

/// A lease counts in the term in which it is taken and in the next one, also if others are charged meanwhile.
#[test]
fn a_lease_is_out_until_the_end_of_the_next_term() {
    for again in [0, 2500 * MS] {
        let mut office = Office::new("W", day(1000), false);
        if again > 0 {
            // One that came back leaves nothing behind.
            office.take_block(1, 0);
            office.workers[1].close(START);
        }
        office.take_block(0, again);
        assert!(office.take(1, again + 500 * MS));
        assert!(office.flood(1, again + 750 * MS) > 800);
        assert!(office.check(1, again + SECOND - 21 * MS).is_outstanding(), "{again}");
        let late = office.check(1, again + SECOND);
        assert!(!late.decision().is_admitted());
        assert!(!late.is_outstanding(), "it was not given back: {again}");
    }
}

/// It spends nothing of what it held before, which is out for all others until it gives that back.
#[test]
fn what_a_worker_holds_that_stands_still_for_less_than_a_term_was_not_used() {
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
        office.workers[0].tidy(office.start.later(begins + 499 * MS));
        assert_eq!(used + office.flood(1, begins + 499 * MS), 1000, "{short}, from {begins} on");
    }
}

/// A worker with a slow clock finds leases that are younger than its clock.
#[test]
fn a_worker_may_be_a_minute_late() {
    let mut office = Office::new("W", day(1000), false);
    office.take_block(0, 80 * SECOND);
    office.flood(1, 20 * SECOND);
    assert!(office.check(1, 20 * SECOND).is_outstanding());
}

/// What takes as much as what was refused is refused without a look; what takes less may fit.
#[test]
fn a_refusal_is_remembered_for_what_takes_as_much() {
    let mut office = Office::new("W", Quota::new(Unit::Day, 10), false);
    let check = |office: &mut Office, cost: u64, ticks: u64| {
        office.cost = cost;
        let before = office.data.reads.get();
        let is_admitted = office.check(0, ticks).decision().is_admitted();
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

/// Shared data was lost, and others have taken the caller's place: what it holds is not what was taken out of the
/// bucket that it shares now.
#[test]
fn a_lease_does_not_count_as_given_back_to_a_bucket() {
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
    assert_eq!(office.workers[0].remaining(&reservation), Some(990));
}
