//! The charge of a request, with other charges between its check and its charge.

use diana_policy::Quota;
use diana_policy::decision::Decision;
use diana_store::tables::Tables;

use super::{DAY, START, admits, admits_of, by_day, key, open};
use kit::store::{Decided, Take};

/// Other requests may have used up the counter since the check.
#[test]
fn charge_after_other_charges_is_checked_again() {
    for (rpu, both) in [(1, false), (2, true)] {
        let mut store = open(by_day(rpu), 1_000, 10_000, &mut Tables::default());
        let mut first = store.checked(key(1).into(), 1, START);
        let mut second = store.checked(key(1).into(), 1, START);
        assert_eq!((first.decision(), second.decision()), (Decision::NOW, Decision::NOW));
        assert!(store.charged(&mut first, 0).is_admitted() && first.is_charged());
        let decision = store.charged(&mut second, 7);
        assert_eq!((decision.is_admitted(), second.is_charged()), (both, both));
        if both {
            assert_eq!(decision, Decision::Admit { wait: 7 }, "it leaves when others let it");
        }
        // A refusal at the check is final.
        let mut third = store.checked(key(1).into(), 1, START);
        assert!(!store.charged(&mut third, 0).is_admitted() && !third.is_charged());
        assert_eq!(store.remaining(&third).map(|it| it.permits), Some(0));
    }
}

/// If most requests take several permits, one count represents that number, and never less than the
/// charge.
#[test]
fn unusual_cost_is_counted_in_full() {
    for (cost, taken) in [(3, 3), (1, 3), (4, 6), (6, 6), (7, 9)] {
        let mut store =
            open(Quota { cost: 3, ..by_day(30) }, 1_000, 10_000, &mut Tables::default());
        assert!(admits_of(&mut *store, 1, cost, START));
        let seen = store.checked(key(1).into(), 3, START);
        assert_eq!(store.remaining(&seen).map(|it| it.permits), Some(30 - taken), "{cost}");
    }
    let mut store = open(Quota { cost: 3, ..by_day(30) }, 1_000, 10_000, &mut Tables::default());
    assert_eq!((0..100).take_while(|_| store.take(key(1), 3, START).is_none()).count(), 10);
    assert!(!admits_of(&mut *store, 1, 1, START));
    let refused = store.take(key(2), 31, START).expect("more than there is");
    assert_eq!(
        (refused.decision(), store.remaining(&refused).map(|it| it.permits)),
        (Decision::NEVER, Some(30))
    );
}

/// The filter of the next day counts in units of the new cost.
#[test]
fn new_day_counts_in_units_of_the_new_cost() {
    let mut tables = Tables::default();
    let mut old = open(by_day(30), 1_000, 10_000, &mut tables);
    assert!(admits(&mut *old, 1, START));
    let mut new = open(Quota { cost: 3, ..by_day(90) }, 1_000, 10_000, &mut tables);
    let tomorrow = START.later(DAY);
    assert!(admits_of(&mut *new, 1, 1, tomorrow));
    let seen = new.checked(key(1).into(), 3, tomorrow);
    assert_eq!(
        new.remaining(&seen).map(|it| it.permits),
        Some(87),
        "one count stands for three permits"
    );
}
