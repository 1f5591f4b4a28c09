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
