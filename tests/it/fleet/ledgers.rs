//! Batches of settlements: sent, waiting, and dropped.

use diana_algorithm::IN_FLIGHT;
use diana_policy::Quota;
use diana_policy::time::{Micros, SECOND, Unit};
use diana_redis::ledger::Ledgers;
use diana_redis::protocol::{Charge, Effect, SettlementBatch};
use diana_redis::shard::{Shard, Shards};
use kit::laws::case::Case;
use kit::model::rule::Rule;

use super::charge;
use crate::allocator;

/// Maximum number of waiting charges, and of those in a batch.
const MOST: usize = 8192;
const BATCH: usize = 64;

const START: u64 = 1_000 * SECOND;

/// The interval of a worker's reports that it lives.
const BEAT: u64 = SECOND / 2;

fn ledgers(random: u64) -> (Ledgers, [Shard; 2]) {
    let mut ledgers = Ledgers::default();
    ledgers.begin(random);
    let parts: Vec<Shard> = Shards::new(2).all().collect();
    (ledgers, [parts[0], parts[1]])
}

fn add(ledgers: &mut Ledgers, part: Shard, count: usize) {
    (0..count).for_each(|_| ledgers.add(part, charge(1)));
}

/// The batches to send: the shard, the number, and the count of charges of each.
fn take_batches(ledgers: &mut Ledgers, away: &[Shard]) -> Vec<(Shard, SettlementBatch, usize)> {
    let batches = ledgers.take(away, START).into_iter();
    batches.map(|(part, settles, charges)| (part, settles, charges.len())).collect()
}

#[test]
fn batch_has_at_most_the_allowed_charges() {
    for (count, batches) in
        [(BATCH - 1, vec![BATCH - 1]), (BATCH, vec![BATCH]), (2 * BATCH + 1, vec![BATCH, BATCH, 1])]
    {
        let (mut ledgers, [part, _]) = ledgers(7);
        add(&mut ledgers, part, count);
        for (number, wanted) in (1..).zip(batches) {
            let settles = SettlementBatch { sender: 7, number, asks: wanted };
            assert_eq!(take_batches(&mut ledgers, &[]), [(part, settles, wanted)]);
            ledgers.on_batch_end(part, settles, true);
        }
        assert!(!ledgers.is_any() && take_batches(&mut ledgers, &[]).is_empty());
    }
}

/// One at a time for each shard, and none for an unavailable shard.
#[test]
fn failed_batch_is_sent_again() {
    let (mut ledgers, [part, other]) = ledgers(7);
    add(&mut ledgers, part, 1);
    add(&mut ledgers, other, 1);
    assert!(ledgers.is_ready(&[part]) && !ledgers.is_ready(&[part, other]));
    let of_other = take_batches(&mut ledgers, &[part]);
    assert_eq!(of_other.iter().map(|it| it.0).collect::<Vec<_>>(), [other]);
    let first = take_batches(&mut ledgers, &[]);
    assert_eq!(first.iter().map(|it| it.0).collect::<Vec<_>>(), [part]);
    add(&mut ledgers, part, 1);
    assert!(!ledgers.is_ready(&[]) && take_batches(&mut ledgers, &[]).is_empty());
    let (_, settles, _) = first[0];
    ledgers.on_batch_end(part, settles, false);
    assert!(ledgers.is_ready(&[]));
    assert_eq!(take_batches(&mut ledgers, &[]), first, "as it was");
    ledgers.on_batch_end(part, settles, true);
    assert_eq!(take_batches(&mut ledgers, &[])[0].1.number, settles.number + 1);
}

/// A release without room would leave its slot held forever.
#[test]
fn release_without_room_drops_all_slots() {
    let (mut ledgers, [part, _]) = ledgers(7);
    let holder = ledgers.hold(part, charge(2), 1, START);
    let (_, settles, _) = take_batches(&mut ledgers, &[])[0];
    ledgers.on_batch_end(part, settles, true);
    add(&mut ledgers, part, MOST);
    ledgers.free(part, charge(2), holder);
    assert!(!ledgers.heartbeat(&charge(2), START), "it holds nothing");
    while let Some((part, settles, _)) = take_batches(&mut ledgers, &[]).pop() {
        ledgers.on_batch_end(part, settles, true);
    }
    assert_ne!(ledgers.hold(part, charge(2), 1, START), holder);
}

#[test]
fn heir_settles_inherited_charges_without_slots() {
    let (mut old, [part, other]) = ledgers(7);
    let (mut new, _) = ledgers(8);
    old.hold(part, charge(2), 1, START);
    add(&mut old, part, BATCH);
    let sent = take_batches(&mut old, &[]);
    add(&mut old, other, MOST - 1);
    new.inherit(&mut old);
    assert!(!old.is_any() && new.is_any());
    assert!(!new.heartbeat(&charge(2), START), "it holds no place");
    let again = take_batches(&mut new, &[other]);
    assert_eq!(again, sent, "under its number");
    new.on_batch_end(part, sent[0].1, true);
    // The retired one has the full room.
    add(&mut old, part, MOST);
    assert_eq!((old.dropped, new.dropped), (0, 0));
}

/// Each shard expires separately, but slots have one holder number in all of them.
#[test]
fn expired_slot_in_one_shard_changes_the_holder() {
    let (mut ledgers, [part, other]) = ledgers(7);
    let said = |ledgers: &mut Ledgers, away: &[Shard], now: u64| {
        for (part, settles, _) in ledgers.take(away, now) {
            ledgers.on_batch_end(part, settles, true);
        }
    };
    let holder = ledgers.hold(part, charge(2), 1, START);
    said(&mut ledgers, &[], START);
    // A slot in another shard does not count for this one.
    let now = START + SECOND;
    assert_eq!(ledgers.hold(other, charge(2), 1, now), holder);
    said(&mut ledgers, &[part], now);
    assert!(!ledgers.heartbeat(&charge(2), now), "none of them is held any more");
    assert_ne!(ledgers.hold(other, charge(2), 1, now), holder);
    let is_place = |charge: &Charge| matches!(charge.effect, Effect::HoldSlots { slots: 1, .. });
    let batches = ledgers.take(&[], now);
    assert!(batches.iter().all(|(.., charges)| charges.iter().all(is_place)), "it is the first");
}

/// Configurations change repeatedly, and each leaves settlements or none.
#[test]
fn settled_charges_of_ended_instances_take_no_memory() {
    let (mut heir, [part, _]) = ledgers(7);
    add(&mut heir, part, 1);
    let settle_all = |ledgers: &mut Ledgers| {
        while let Some((part, settles, _)) = take_batches(ledgers, &[]).pop() {
            ledgers.on_batch_end(part, settles, true);
        }
    };
    let mut change = |random: u64| {
        let (mut old, _) = ledgers(random);
        add(&mut old, part, 1);
        if random.is_multiple_of(2) {
            settle_all(&mut old);
        }
        heir.inherit(&mut old);
        settle_all(&mut heir);
    };
    (100..110).for_each(&mut change);
    let before = allocator::bytes();
    (110..1000).for_each(&mut change);
    assert_eq!(allocator::bytes(), before);
}

/// The charge of an in-flight slot.
fn slot_charge() -> Charge {
    let quota = Quota::new(Unit::Second, 6);
    let algorithm = (IN_FLIGHT.build)(&quota).unwrap();
    Rule::of(IN_FLIGHT, Case { quota, algorithm }).unwrap().charge(1, 0, 0)
}

/// Settles all waiting entries at an instant. Returns the messages.
fn settle(ledgers: &mut Ledgers, now: Micros) -> Vec<Effect> {
    let mut said = Vec::new();
    loop {
        let batches = ledgers.take(&[], now);
        if batches.is_empty() {
            return said;
        }
        for (part, settles, charges) in batches {
            said.extend(charges.iter().map(|it| it.effect));
            ledgers.on_batch_end(part, settles, true);
        }
    }
}

#[test]
fn heartbeat_is_sent_when_nothing_else_was() {
    let (mut ledgers, [part, _]) = ledgers(7);
    assert!(!ledgers.heartbeat(&slot_charge(), START), "it holds nothing");
    ledgers.hold(part, slot_charge(), 1, START);
    // Waiting entries and sent batches are also reports that the worker lives.
    assert!(ledgers.heartbeat(&slot_charge(), START + BEAT));
    let batches = ledgers.take(&[], START);
    assert_eq!(batches.iter().map(|(.., charges)| charges.len()).collect::<Vec<_>>(), [1]);
    assert!(ledgers.heartbeat(&slot_charge(), START + BEAT));
    batches.iter().for_each(|(part, settles, _)| ledgers.on_batch_end(*part, *settles, true));
    assert!(ledgers.heartbeat(&slot_charge(), START + BEAT - 1) && !ledgers.is_any());
    assert!(ledgers.heartbeat(&slot_charge(), START + BEAT));
    assert_eq!(settle(&mut ledgers, START + BEAT), [Effect::Heartbeat]);
    assert!(ledgers.heartbeat(&slot_charge(), START + 2 * BEAT - 1) && !ledgers.is_any());
}

#[test]
fn holder_changes_only_after_it_may_have_expired() {
    let (mut ledgers, [one, other]) = ledgers(7);
    let first = ledgers.hold(one, slot_charge(), 1, START);
    settle(&mut ledgers, START);
    ledgers.free(one, slot_charge(), first);
    settle(&mut ledgers, START);
    // No slots were held in this time in any shard.
    let later = START + 10 * SECOND;
    assert_eq!(ledgers.hold(other, slot_charge(), 11, later), first);
    settle(&mut ledgers, later);
    assert!(ledgers.heartbeat(&slot_charge(), later));
    assert_eq!(ledgers.hold(one, slot_charge(), 11, later), first);
    settle(&mut ledgers, later);
    // They are valid for half a second more, and not for a second.
    assert!(ledgers.heartbeat(&slot_charge(), later + SECOND - 1));
    assert_eq!(ledgers.hold(one, slot_charge(), 12, later + SECOND - 1), first);
    let next = ledgers.hold(one, slot_charge(), 12, later + SECOND);
    assert_ne!(next, first);
    assert_eq!(ledgers.hold(one, slot_charge(), 12, later + SECOND), next);
}

/// A resent batch does not revive a holder that has expired.
#[test]
fn resent_batch_reports_the_current_holder() {
    let (mut ledgers, [part, _]) = ledgers(7);
    ledgers.hold(part, slot_charge(), 1, START);
    let (_, settles, _) = ledgers.take(&[], START).remove(0);
    assert!(
        ledgers.heartbeat(&slot_charge(), START + SECOND - 1)
            && !ledgers.heartbeat(&slot_charge(), START + SECOND)
    );
    ledgers.on_batch_end(part, settles, false);
    let (_, again, charges) = ledgers.take(&[], START + SECOND).remove(0);
    let next = ledgers.hold(part, slot_charge(), 2, START + SECOND);
    assert_eq!((again, charges.len()), (settles, 1));
    assert_eq!(charges[0].effect, Effect::Heartbeat);
    let numbers = |charge: &Charge| format!("{:?}", charge.numbers);
    let expected = Charge { numbers: slot_charge().numbers.held_by(next), ..slot_charge() };
    assert_eq!(numbers(&charges[0]), numbers(&expected));
}
