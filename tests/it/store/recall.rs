//! What a worker knows of a caller without asking the gateway, and for how long.

use diana_core::decision::Decision;
use diana_core::policy::{Quota, Scope};
use diana_core::store::stores;
use diana_core::time::{Now, SECOND, Unit};
use kit::store::gateway::{START, key};

use super::office::{MS, Office, day};

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

/// Somebody who waits is told to look again: at what others may have given back, not at what was used.
#[test]
fn who_looks_again_asks_unless_the_refusal_was_final() {
    for (beside, asks) in [(false, false), (true, true)] {
        let mut office = Office::new("W", day(1), beside);
        assert!(office.take(1, 0));
        assert!(!office.take(0, 0));
        let before = office.data.reads.get();
        office.workers[0].look_again(office.ann);
        assert!(!office.take(0, 1));
        assert_eq!(office.data.reads.get() > before, asks, "beside others: {beside}");
    }
    let mut office = Office::new("W", day(1000), false);
    office.take_block(1, 0);
    office.flood(0, 0);
    assert!(office.check(0, 1).loan() > 0, "the other worker holds what is left");
    office.workers[1].close(START.later(2));
    assert!(!office.take(0, 2), "it is remembered for a moment");
    office.workers[0].look_again(office.ann);
    assert!(office.take(0, 2));
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
        let left = office.workers[1].remaining(&reservation);
        assert_eq!(left < 100_000 - first - then, lends, "{first}, and {then} at {at}");
    }
}

/// Whoever comes all at once will go on like that, as far as can be told.
#[test]
fn the_first_block_is_sized_by_the_pace_so_far() {
    let mut office = Office::new("W", day(100_000), false);
    assert!((0..21).all(|_| office.take(0, 0)));
    let reservation = office.check(1, 0);
    let out = 100_000 - 21 - office.workers[1].remaining(&reservation);
    // As in an eightieth of a second, the shortest time that a pace is told from.
    assert_eq!(out, 8 * 20);
}

/// No call of the host takes long, however many are idle.
#[test]
fn blocks_go_back_in_portions() {
    let mut office = Office::new("W", day(1000), false);
    let now = START;
    let mut out = 0;
    for caller in 0..4000 {
        let store = &mut office.workers[0];
        store.hint_demand(key(caller), 20);
        let mut reservation = store.check(key(caller), 1, now);
        assert!(store.charge(&mut reservation, 0).is_admitted());
        let reservation = office.workers[1].check(key(caller), 1, now);
        out += usize::from(office.workers[1].remaining(&reservation) < 999);
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
    let of = |keys| stores::memory(Scope::Gateway, 1, Some(keys), false, 1).worker;
    assert!((100..=1000).contains(&of(1)), "{}", of(1));
    assert_eq!(of(4096), 4096 * of(1));
    assert_eq!(of(100_000), of(4096));
    // Nobody shares a bucket of a rule for everybody.
    let shared = |callers| stores::memory(Scope::Gateway, 1, callers, false, 1).shared;
    assert!(10 * shared(None) < shared(Some(1)));
}

/// Permits of a bucket that drained more slowly while some were out might be there already; if it takes
/// longer than a lease can have mattered, or none was ever out, they were used.
#[test]
fn a_request_waits_for_permits_that_gather_only_where_a_lease_can_have_held_them_back() {
    // Terms of leases have numbers, one of which is zero.
    let zero = (1 << 17) * SECOND / 2;
    for start in [START, Now { mono: zero, ..START }] {
        for (burst, lent, at, waits) in [
            (248, true, 0, true),
            (245, true, 0, true),
            (244, true, 0, false),
            (248, false, 0, false),
            (248, true, 10 * SECOND, false),
        ] {
            let quota = Quota { cost: 15, burst: Some(burst), ..Quota::new(Unit::Second, 50) };
            let mut office = Office { start, ..Office::new("TB", quota, false) };
            if lent {
                office.take_block(0, 0);
                office.workers[0].close(start);
            }
            assert!(office.flood(1, at) >= 15);
            let reservation = office.check(1, at);
            let told = reservation.decision();
            assert_eq!(reservation.loan() > 0, waits, "{burst}, {lent}, at {at}: {told:?}");
        }
    }
}

/// A caller that comes often and was refused waits while permits gather, unless too many of its requests waited
/// within a second.
#[test]
fn a_crowd_does_not_wait_for_permits_that_gather() {
    let mut office = Office::new("TB", Quota::new(Unit::Second, 1000), false);
    let refused = |office: &mut Office, at| {
        office.flood(0, at);
        office.check(0, at + 2 * MS - 1).loan()
    };
    assert!(refused(&mut office, 0) > 0);
    office.workers[0].crowd(office.ann, office.start);
    assert_eq!(refused(&mut office, 5 * MS), 0);
    assert_eq!(refused(&mut office, SECOND - 2 * MS), 0);
    assert!(refused(&mut office, SECOND - 2 * MS + 1) > 0);
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
    assert!(office.check(0, 1030 * MS).loan() > 0, "the other worker holds what is left");
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
    for taken in 1..20 {
        let mut reservation = office.check(0, 0);
        assert_eq!(office.workers[0].remaining(&reservation), 1000 - taken);
        office.workers[0].charge(&mut reservation, 0);
        assert_eq!(office.workers[0].remaining(&reservation), 1000 - taken - 1);
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
        assert!(office.flood(1, again + 750 * MS) > 900);
        assert_eq!(office.check(1, again + 750 * MS).loan(), 250 * MS, "{again}");
        office.workers[1].look_again(office.ann);
        let late = office.check(1, again + SECOND);
        assert!(!late.decision().is_admitted());
        assert_eq!(late.loan(), 0, "it was not given back: {again}");
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
        let used = 1 + office.flood(1, begins);
        for still in [100, 200, 300, 400, 499] {
            office.workers[1].look_again(office.ann);
            let refused = office.check(1, begins + still * MS);
            assert!(refused.loan() > 0, "{short}, from {begins} on, after {still} ms: it fits");
        }
        office.workers[0].tidy(office.start.later(begins + 499 * MS));
        office.workers[1].look_again(office.ann);
        assert_eq!(used + office.flood(1, begins + 499 * MS), 1000, "{short}, from {begins} on");
    }
}

/// A worker that looks with a clock of a while ago finds what others have out since then; a lease of so much later
/// than a minute is taken for one of hours ago, since the numbers of terms come again.
#[test]
fn a_worker_may_be_a_minute_late() {
    let lease = SECOND;
    for (late, loan) in [(60 * SECOND, 60 * SECOND + lease), (60 * SECOND + lease / 2, lease)] {
        let mut office = Office::new("W", day(1000), false);
        office.take_block(0, 80 * SECOND);
        office.flood(1, 80 * SECOND - late);
        assert_eq!(office.check(1, 80 * SECOND - late).loan(), loan, "{late}");
    }
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

/// A bucket of many permits a tick: it takes one tick to fill up, whatever is out.
#[test]
fn permits_gather_also_where_what_is_out_would_not_come_sooner() {
    let quota = Quota { burst: Some(100), ..Quota::new(Unit::Second, 1_000_000_000) };
    let mut office = Office::new("TB", quota, false);
    office.take_block(0, 0);
    office.cost = 100;
    let reservation = office.check(1, 0);
    assert_eq!(reservation.decision(), Decision::retry(1));
    assert!(reservation.loan() > 0);
}
