//! What a worker says in Redis of the places that it holds: that it lives, when it has said nothing else for half a second;
//! and that it is somebody else, once it may have been forgotten.

use diana_core::algorithm::IN_FLIGHT;
use diana_core::policy::Quota;
use diana_core::redis::ledger::Ledgers;
use diana_core::redis::part::{Part, Parts};
use diana_core::redis::protocol::{Back, Charge};
use diana_core::time::{Micros, SECOND, Unit};
use kit::laws::case::Case;
use kit::model::rule::Rule;

const BEAT: Micros = SECOND / 2;

/// Any instant.
const START: Micros = 1_000 * SECOND;

fn charge() -> Charge {
    let quota = Quota::new(Unit::Second, 6);
    let algorithm = (IN_FLIGHT.build)(&quota).unwrap();
    Rule::of(IN_FLIGHT, Case { quota, algorithm }).unwrap().charge(1, 0, 0)
}

fn ledgers() -> (Ledgers, [Part; 2]) {
    let mut ledgers = Ledgers::default();
    ledgers.begin(7);
    let parts: Vec<Part> = Parts::new(2).all().collect();
    (ledgers, [parts[0], parts[1]])
}

/// All that waits is settled at an instant. What was said.
fn settle(ledgers: &mut Ledgers, now: Micros) -> Vec<Back> {
    let mut said = Vec::new();
    loop {
        let batches = ledgers.take(&[], now);
        if batches.is_empty() {
            return said;
        }
        for (part, settles, charges) in batches {
            said.extend(charges.iter().map(|it| it.back));
            ledgers.come_back(part, settles, true);
        }
    }
}

#[test]
fn it_says_that_it_lives_when_it_has_said_nothing_else() {
    let (mut ledgers, [part, _]) = ledgers();
    assert!(!ledgers.beat(&charge(), START), "it holds nothing");
    ledgers.hold(part, charge(), 1, START);
    // What waits or is on its way says so, too.
    assert!(ledgers.beat(&charge(), START + BEAT));
    let batches = ledgers.take(&[], START);
    assert_eq!(batches.iter().map(|(.., charges)| charges.len()).collect::<Vec<_>>(), [1]);
    assert!(ledgers.beat(&charge(), START + BEAT));
    batches.iter().for_each(|(part, settles, _)| ledgers.come_back(*part, *settles, true));
    assert!(ledgers.beat(&charge(), START + BEAT - 1) && !ledgers.is_any());
    assert!(ledgers.beat(&charge(), START + BEAT));
    assert_eq!(settle(&mut ledgers, START + BEAT), [Back::Lives]);
    assert!(ledgers.beat(&charge(), START + 2 * BEAT - 1) && !ledgers.is_any());
}

#[test]
fn it_is_somebody_else_only_where_it_may_have_been_forgotten() {
    let (mut ledgers, [one, other]) = ledgers();
    let first = ledgers.hold(one, charge(), 1, START);
    settle(&mut ledgers, START);
    ledgers.free(one, charge(), first);
    settle(&mut ledgers, START);
    // Nothing was held meanwhile, there or elsewhere.
    let later = START + 10 * SECOND;
    assert_eq!(ledgers.hold(other, charge(), 11, later), first);
    settle(&mut ledgers, later);
    assert!(ledgers.beat(&charge(), later));
    assert_eq!(ledgers.hold(one, charge(), 11, later), first);
    settle(&mut ledgers, later);
    // They are still its own half a second later, and not a second later.
    assert!(ledgers.beat(&charge(), later + SECOND - 1));
    assert_eq!(ledgers.hold(one, charge(), 12, later + SECOND - 1), first);
    let next = ledgers.hold(one, charge(), 12, later + SECOND);
    assert_ne!(next, first);
    assert_eq!(ledgers.hold(one, charge(), 12, later + SECOND), next);
}

#[test]
fn a_part_that_heard_nothing_for_a_second_may_have_forgotten_it() {
    let (mut ledgers, [part, _]) = ledgers();
    let first = ledgers.hold(part, charge(), 1, START);
    settle(&mut ledgers, START);
    assert_ne!(ledgers.hold(part, charge(), 2, START + SECOND), first);
}

/// Whoever was forgotten shall not live once more by what is sent again.
#[test]
fn what_is_sent_again_says_that_whoever_came_after_it_lives() {
    let (mut ledgers, [part, _]) = ledgers();
    ledgers.hold(part, charge(), 1, START);
    let (_, settles, _) = ledgers.take(&[], START).remove(0);
    assert!(
        ledgers.beat(&charge(), START + SECOND - 1) && !ledgers.beat(&charge(), START + SECOND)
    );
    ledgers.come_back(part, settles, false);
    let (_, again, charges) = ledgers.take(&[], START + SECOND).remove(0);
    let next = ledgers.hold(part, charge(), 2, START + SECOND);
    assert_eq!((again, charges.len()), (settles, 1));
    assert_eq!(charges[0].back, Back::Lives);
    let numbers = |charge: &Charge| format!("{:?}", charge.numbers);
    let expected = Charge { numbers: charge().numbers.held_by(next), ..charge() };
    assert_eq!(numbers(&charges[0]), numbers(&expected));
}

/// Most charges that wait.
const MOST: usize = 8192;

#[test]
fn what_finds_no_room_is_not_held() {
    let (mut ledgers, [part, _]) = ledgers();
    let first = ledgers.hold(part, charge(), 1, START);
    settle(&mut ledgers, START);
    (0..MOST).for_each(|_| ledgers.add(part, charge()));
    // The one that is to be said of it is the only one that gets lost.
    assert_ne!(ledgers.hold(part, charge(), 1, START), first);
    assert_eq!(ledgers.dropped, 1);
}

#[test]
fn what_is_given_up_makes_room() {
    let (mut ledgers, [part, _]) = ledgers();
    (0..10).for_each(|_| _ = ledgers.hold(part, charge(), 1, START));
    assert!(!ledgers.beat(&charge(), START + SECOND));
    (0..MOST).for_each(|_| ledgers.add(part, charge()));
    assert_eq!(ledgers.dropped, 0);
    ledgers.add(part, charge());
    assert_eq!(ledgers.dropped, 1);
}

/// Zero is the number of nobody.
#[test]
fn whatever_number_it_begins_with_it_is_somebody() {
    for random in [0, 1 << 53, u64::MAX << 53] {
        let mut ledgers = Ledgers::default();
        ledgers.begin(random);
        let part = Parts::new(2).all().next().unwrap();
        assert_ne!(ledgers.hold(part, charge(), 1, START), 0, "{random}");
    }
}
