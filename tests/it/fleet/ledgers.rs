//! What is to be settled, batch by batch: what is on its way, what waits, and what is given up.

use diana_core::redis::ledger::Ledgers;
use diana_core::redis::part::{Part, Parts};
use diana_core::redis::protocol::{Back, Charge, Settles};
use diana_core::time::SECOND;

use super::charge;
use crate::allocated;

/// Most charges that wait, and most of them in a batch.
const MOST: usize = 8192;
const BATCH: usize = 64;

const START: u64 = 1_000 * SECOND;

fn ledgers(random: u64) -> (Ledgers, [Part; 2]) {
    let mut ledgers = Ledgers::default();
    ledgers.begin(random);
    let parts: Vec<Part> = Parts::new(2).all().collect();
    (ledgers, [parts[0], parts[1]])
}

fn add(ledgers: &mut Ledgers, part: Part, count: usize) {
    (0..count).for_each(|_| ledgers.add(part, charge(1)));
}

/// The batches that leave: for which part, under which number, and how many charges each has.
fn leave(ledgers: &mut Ledgers, away: &[Part]) -> Vec<(Part, Settles, usize)> {
    let batches = ledgers.take(away, START).into_iter();
    batches.map(|(part, settles, charges)| (part, settles, charges.len())).collect()
}

#[test]
fn a_batch_has_as_many_charges_as_it_may() {
    for (count, batches) in
        [(BATCH - 1, vec![BATCH - 1]), (BATCH, vec![BATCH]), (2 * BATCH + 1, vec![BATCH, BATCH, 1])]
    {
        let (mut ledgers, [part, _]) = ledgers(7);
        add(&mut ledgers, part, count);
        for (number, wanted) in (1..).zip(batches) {
            let settles = Settles { sender: 7, number, asks: wanted };
            assert_eq!(leave(&mut ledgers, &[]), [(part, settles, wanted)]);
            ledgers.come_back(part, settles, true);
        }
        assert!(!ledgers.is_any() && leave(&mut ledgers, &[]).is_empty());
    }
}

/// One at a time for each part, and none for a part that is away.
#[test]
fn what_is_on_its_way_leaves_again_once_it_came_to_nothing() {
    let (mut ledgers, [part, other]) = ledgers(7);
    add(&mut ledgers, part, 1);
    add(&mut ledgers, other, 1);
    assert!(ledgers.is_ready(&[part]) && !ledgers.is_ready(&[part, other]));
    let of_other = leave(&mut ledgers, &[part]);
    assert_eq!(of_other.iter().map(|it| it.0).collect::<Vec<_>>(), [other]);
    let first = leave(&mut ledgers, &[]);
    assert_eq!(first.iter().map(|it| it.0).collect::<Vec<_>>(), [part]);
    add(&mut ledgers, part, 1);
    assert!(!ledgers.is_ready(&[]) && leave(&mut ledgers, &[]).is_empty());
    let (_, settles, _) = first[0];
    ledgers.come_back(part, settles, false);
    assert!(ledgers.is_ready(&[]));
    assert_eq!(leave(&mut ledgers, &[]), first, "as it was");
    ledgers.come_back(part, settles, true);
    assert_eq!(leave(&mut ledgers, &[])[0].1.number, settles.number + 1);
}

/// A place whose end finds no room would be held for ever.
#[test]
fn whoever_cannot_say_that_a_place_is_free_gives_up_all_places() {
    let (mut ledgers, [part, _]) = ledgers(7);
    let holder = ledgers.hold(part, charge(2), 1, START);
    let (_, settles, _) = leave(&mut ledgers, &[])[0];
    ledgers.come_back(part, settles, true);
    add(&mut ledgers, part, MOST);
    ledgers.free(part, charge(2), holder);
    assert!(!ledgers.beat(&charge(2), START), "it holds nothing");
    while let Some((part, settles, _)) = leave(&mut ledgers, &[]).pop() {
        ledgers.come_back(part, settles, true);
    }
    assert_ne!(ledgers.hold(part, charge(2), 1, START), holder);
}

#[test]
fn whoever_inherits_settles_and_holds_nothing_of_the_other_who_can_begin_anew() {
    let (mut old, [part, other]) = ledgers(7);
    let (mut new, _) = ledgers(8);
    old.hold(part, charge(2), 1, START);
    add(&mut old, part, BATCH);
    let sent = leave(&mut old, &[]);
    add(&mut old, other, MOST - 1);
    new.inherit(&mut old);
    assert!(!old.is_any() && new.is_any());
    assert!(!new.beat(&charge(2), START), "it holds no place");
    let again = leave(&mut new, &[other]);
    assert_eq!(again, sent, "under its number");
    new.come_back(part, sent[0].1, true);
    // The one that has ended has room for as many as any.
    add(&mut old, part, MOST);
    assert_eq!((old.dropped, new.dropped), (0, 0));
}

/// Each part forgets by itself, but places are known by one number in all of them.
#[test]
fn a_part_that_may_have_forgotten_a_place_is_noticed_by_whoever_says_that_it_lives() {
    let (mut ledgers, [part, other]) = ledgers(7);
    let said = |ledgers: &mut Ledgers, away: &[Part], now: u64| {
        for (part, settles, _) in ledgers.take(away, now) {
            ledgers.come_back(part, settles, true);
        }
    };
    let holder = ledgers.hold(part, charge(2), 1, START);
    said(&mut ledgers, &[], START);
    // A place in another part says nothing of this one.
    let now = START + SECOND;
    assert_eq!(ledgers.hold(other, charge(2), 1, now), holder);
    said(&mut ledgers, &[part], now);
    assert!(!ledgers.beat(&charge(2), now), "none of them is held any more");
    assert_ne!(ledgers.hold(other, charge(2), 1, now), holder);
    let is_place = |charge: &Charge| matches!(charge.back, Back::Holds { places: 1, .. });
    let batches = ledgers.take(&[], now);
    assert!(batches.iter().all(|(.., charges)| charges.iter().all(is_place)), "it is the first");
}

/// Configurations change again and again, and each leaves something or nothing.
#[test]
fn what_was_settled_of_those_that_ended_takes_no_memory() {
    let (mut heir, [part, _]) = ledgers(7);
    add(&mut heir, part, 1);
    let settle = |ledgers: &mut Ledgers| {
        while let Some((part, settles, _)) = leave(ledgers, &[]).pop() {
            ledgers.come_back(part, settles, true);
        }
    };
    let mut change = |random: u64| {
        let (mut old, _) = ledgers(random);
        add(&mut old, part, 1);
        if random.is_multiple_of(2) {
            settle(&mut old);
        }
        heir.inherit(&mut old);
        settle(&mut heir);
    };
    (100..110).for_each(&mut change);
    let before = allocated::bytes();
    (110..1000).for_each(&mut change);
    assert_eq!(allocated::bytes(), before);
}
