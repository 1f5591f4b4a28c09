//! Configuration changes of quotas.

use diana_policy::Quota;
use diana_store::tables::Tables;
use kit::store::Take;

use super::{DAY, START, admits, by_day, open};

#[test]
fn usage_survives_a_changed_quota() {
    let mut tables = Tables::default();
    let mut old = open(by_day(5), 1_000, 10_000, &mut tables);
    assert!((0..4).all(|_| admits(&mut *old, 1, START)));
    // Requests under the old rule are still open.
    for (rpu, cost, accounts) in [(7, 1, 1_000), (6, 2, 50_000), (7, 3, 10)] {
        let quota = Quota { cost, ..by_day(rpu) };
        let mut new = open(quota, accounts, 10_000, &mut tables);
        let reservation = new.checked(super::key(1).into(), cost, START);
        assert_eq!(new.remaining(&reservation).map(|it| it.permits), Some(rpu - 4));
        assert!(super::admits_of(&mut *new, 2, cost, START));
    }
    let mut same = open(by_day(5), 1_000, 10_000, &mut tables);
    assert!(admits(&mut *same, 1, START));
    assert!(!admits(&mut *same, 1, START));
    assert!(!admits(&mut *old, 1, START), "both count together");
}

#[test]
fn narrow_counters_are_replaced_at_midnight() {
    let mut tables = Tables::default();
    let old = open(by_day(3), 1_000, 10_000, &mut tables);
    let mut new = open(by_day(300), 1_000, 10_000, &mut tables);
    assert_eq!((0..400).filter(|_| admits(&mut *new, 1, START)).count(), 300, "nobody was counted");
    drop(new);
    let mut narrow = open(by_day(3), 1_000, 10_000, &mut tables);
    assert!(!admits(&mut *narrow, 1, START));
    let tomorrow = START.later(DAY);
    assert!(admits(&mut *narrow, 1, tomorrow));
    let mut wide = open(by_day(300), 1_000, 10_000, &mut tables);
    assert_eq!((0..400).filter(|_| admits(&mut *wide, 1, tomorrow)).count(), 2);
    let after = tomorrow.later(DAY);
    assert_eq!((0..400).filter(|_| admits(&mut *wide, 1, after)).count(), 300);
    drop(old);
}

#[test]
fn usage_is_dropped_with_the_last_configuration() {
    let mut tables = Tables::default();
    let mut first = open(by_day(1), 1_000, 10_000, &mut tables);
    assert!(admits(&mut *first, 1, START) && !admits(&mut *first, 1, START));
    assert_eq!((first.maintain(START).keys, first.close(START)), (1, -1));
    drop(first);
    let mut second = open(by_day(1), 1_000, 10_000, &mut tables);
    assert!(admits(&mut *second, 1, START));
    assert_eq!((second.maintain(START).keys, second.maintain(START).keys), (1, 0));
    let third = open(by_day(1), 1_000, 10_000, &mut tables);
    assert_eq!(second.close(START), 0, "the next one goes on with it");
    drop(third);
}
