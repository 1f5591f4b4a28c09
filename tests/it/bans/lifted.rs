//! Bans that an operator begins and lifts, of all workers.

use std::rc::Rc;

use diana_core::key::Key;
use diana_core::policy::Scope;
use diana_core::store::stores::Stores;
use diana_core::store::tables::Tables;
use diana_core::time::SECOND;
use kit::fake::{Asked, FakeSharedData};

use super::fleet::{self, says, together};
use super::gateway::{TICK, open};
use super::{ANN, BAN};

/// Workers tell their refusals with their timers, and what they know of a ban may be a while old.
#[test]
fn what_others_were_refused_before_a_ban_was_lifted_counts_no_more() {
    let data: Rc<FakeSharedData> = Rc::default();
    let (mut ours, mut theirs) = (open(&data), open(&data));
    let now = SECOND;
    (0..BAN.after).for_each(|_| ours.refused(ANN, now));
    (1..BAN.after).for_each(|_| theirs.refused(ANN, now));
    assert!(ours.set(ANN, 0, now + TICK));
    theirs.refused(ANN, now + TICK);
    for bans in [&mut ours, &mut theirs] {
        bans.tidy(now + 2 * TICK);
        assert_eq!(bans.left(ANN, now + 2 * TICK), 0);
    }
    // From a second later on she begins with nothing.
    let later = now + TICK + SECOND;
    for number in 1..=BAN.after {
        theirs.refused(ANN, later);
        theirs.tidy(later);
        let left = if number < BAN.after { 0 } else { BAN.period };
        assert_eq!(theirs.left(ANN, later), left, "after {number}");
    }
    // A ban that an operator begins is no shorter for it, nor is what comes after it forgiven.
    assert!(ours.set(ANN, 0, later) && ours.set(ANN, SECOND, later + 1));
    let end = later + 1 + SECOND;
    assert_eq!(ours.left(ANN, end - 1), 1);
    (0..BAN.after).for_each(|_| ours.refused(ANN, end));
    ours.tidy(end);
    assert_eq!(ours.left(ANN, end), BAN.period);
}

/// An operator's ban holds in all workers, and so does its end. Where a rule counts for each worker there is no room for either.
#[test]
fn a_ban_is_set_and_lifted_for_all_workers() {
    let data: Rc<FakeSharedData> = Rc::default();
    let (mut ours, mut theirs) = (open(&data), open(&data));
    let now = 7 * SECOND;
    assert!(ours.set(ANN, BAN.period, now));
    assert_eq!((ours.left(ANN, now), theirs.left(ANN, now)), (BAN.period, BAN.period));
    // Nobody bans who is banned, however often she is refused, nor is any of that held against her later.
    (0..BAN.after).for_each(|_| ours.refused(ANN, now));
    assert!(ours.set(ANN, 0, now + TICK));
    let later = now + TICK + SECOND;
    (1..BAN.after).for_each(|_| ours.refused(ANN, later));
    assert_eq!((ours.left(ANN, later), theirs.left(ANN, later)), (0, 0));
    ours.refused(ANN, later);
    assert_eq!(ours.left(ANN, later), BAN.period);
    // Once an operator's ban is over the next one is as long as if there had been none.
    let bob = Key { hash: 0xb0b, second_hash: 9 };
    assert!(ours.set(bob, BAN.period, now));
    let over = now + BAN.period;
    (0..BAN.after).for_each(|_| ours.refused(bob, over));
    assert_eq!(ours.left(bob, over), BAN.period);
    let mut tables = Tables::default();
    let mut alone =
        Stores::new("test".into(), data.clone(), &mut tables).open_bans(Scope::Local, BAN, 1, 1000);
    assert!(!alone.set(ANN, BAN.period, now));
    assert_eq!(alone.left(ANN, now), 0);
}

/// A ban that was lifted and began anew elsewhere ends when the new one does.
#[test]
fn of_two_bans_the_later_one_is_told() {
    let data = Rc::<Asked>::default();
    let (mut ours, mut theirs, mut handle) = (fleet::open(&data), fleet::open(&data), together());
    assert_eq!(ours.take(ANN, &says(BAN.period, true, 10), SECOND, &mut handle), BAN.period);
    let later = 12 * SECOND;
    assert_eq!(ours.take(ANN, &says(BAN.period, true, 10), later, &mut handle), BAN.period);
    for bans in [&mut ours, &mut theirs] {
        assert_eq!(bans.left(ANN, later + SECOND, &mut handle), BAN.period - SECOND);
    }
}
