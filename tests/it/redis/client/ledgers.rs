//! Batches of settlements: sent, waiting, and dropped.

use diana_algorithm::IN_FLIGHT;
use diana_policy::Quota;
use diana_policy::key::Key;
use diana_policy::time::{Micros, SECOND, Unit};
use diana_redis::ledger::Ledgers;
use diana_redis::protocol::{Charge, Effect, SettlementBatch};
use diana_redis::shard::{Shard, Shards};
use kit::laws::case::Case;
use kit::model::rule::Rule;

use super::charge;
use crate::support::allocator;

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

/// Each shard forgets separately. The worker keeps its number.
#[test]
fn forgotten_slots_are_reported_to_their_shard() {
    let (mut ledgers, [part, other]) = ledgers(7);
    let holder = ledgers.hold(part, slot_charge(), 1, START);
    settle(&mut ledgers, START);
    let now = START + SECOND;
    assert!(ledgers.is_reporting(part, now) && !ledgers.is_reporting(other, now));
    // A slot in another shard does not count for this one.
    assert_eq!(ledgers.hold(other, slot_charge(), 1, now), holder);
    let batches = ledgers.take(&[part], now);
    batches.iter().for_each(|(part, settles, _)| ledgers.on_batch_end(*part, *settles, true));
    assert!(ledgers.is_reporting(part, now) && !ledgers.is_reporting(other, now));
    assert_eq!(settle(&mut ledgers, now), [Effect::FreeSlots { slots: 1 }]);
    assert!(!ledgers.is_reporting(part, now));
    assert_eq!(ledgers.hold(part, slot_charge(), 2, now), holder);
}

/// The charge of a slot of one of many callers.
fn of_caller(caller: u64) -> Charge {
    Charge { caller: Key { hash: 100 + caller, second_hash: caller }, ..slot_charge() }
}

/// The callers of these charges that report slots, with their numbers.
fn reported(charges: &[Charge]) -> Vec<(u64, u64)> {
    let slots = |charge: &Charge| match charge.effect {
        Effect::FreeSlots { slots } => Some((charge.caller.second_hash, slots)),
        _ => None,
    };
    let mut all: Vec<_> = charges.iter().filter_map(slots).collect();
    all.sort_unstable();
    all
}

/// In as many batches as are necessary, and from the beginning if Redis may have forgotten the first
/// ones in between.
#[test]
fn all_forgotten_slots_are_reported_before_others() {
    const CALLERS: u64 = 2 * BATCH as u64;
    for pause in [SECOND / 2, SECOND] {
        let (mut ledgers, [part, _]) = ledgers(7);
        let mut holder = 0;
        for caller in (0..CALLERS).chain(0..10) {
            holder = ledgers.hold(part, of_caller(caller), 1, START);
        }
        settle(&mut ledgers, START);
        assert!(!ledgers.is_reporting(part, START + SECOND - 1));
        let mut now = START + SECOND;
        assert!(ledgers.heartbeat(&slot_charge(), now) && ledgers.is_ready(&[]));
        // It is free before it was reported: no later report is needed.
        ledgers.free(part, of_caller(CALLERS - 1), holder);
        let mut all = Vec::new();
        while let Some((part, settles, charges)) = ledgers.take(&[], now).pop() {
            assert!(ledgers.is_reporting(part, now));
            // After a lost call the batch is the same.
            ledgers.on_batch_end(part, settles, false);
            let (_, again, same) = ledgers.take(&[], now).remove(0);
            assert_eq!((again, reported(&same)), (settles, reported(&charges)));
            ledgers.on_batch_end(part, settles, true);
            all.push(reported(&charges));
            if all.len() == 1 {
                now += pause;
            }
        }
        assert!(!ledgers.is_reporting(part, now));
        if pause >= SECOND {
            all.remove(0);
        }
        let mut all = all.concat();
        all.sort_unstable();
        let held = |caller| (caller, if caller < 10 { 2 } else { 1 });
        let mut wanted: Vec<_> = (0..CALLERS - 1).map(held).collect();
        if pause < SECOND {
            wanted.push((CALLERS - 1, 0));
        }
        assert_eq!(all, wanted, "after {pause}");
    }
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
    let mut effects = Vec::new();
    loop {
        let batches = ledgers.take(&[], now);
        if batches.is_empty() {
            return effects;
        }
        for (part, settles, charges) in batches {
            effects.extend(charges.iter().map(|it| it.effect));
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
fn holder_changes_only_with_a_full_ledger() {
    let (mut ledgers, [one, other]) = ledgers(7);
    let first = ledgers.hold(one, slot_charge(), 1, START);
    for pause in [SECOND, 10 * SECOND] {
        assert_eq!(ledgers.hold(other, slot_charge(), 11, START + pause), first);
        assert_eq!(ledgers.hold(one, slot_charge(), 11, START + pause), first);
        settle(&mut ledgers, START + pause);
    }
    add(&mut ledgers, one, MOST);
    assert_ne!(ledgers.hold(one, slot_charge(), 12, START), first);
}

/// A resent batch does not revive a holder with slots that were forgotten for lack of room.
#[test]
fn resent_batch_reports_the_current_holder() {
    let (mut ledgers, [part, other]) = ledgers(7);
    ledgers.hold(part, slot_charge(), 1, START);
    let (_, settles, _) = ledgers.take(&[], START).remove(0);
    add(&mut ledgers, other, MOST);
    let next = ledgers.hold(part, slot_charge(), 2, START);
    ledgers.on_batch_end(part, settles, false);
    let (_, again, charges) = ledgers.take(&[other], START).remove(0);
    assert_eq!((again, charges.len()), (settles, 1));
    assert_eq!(charges[0].effect, Effect::Heartbeat);
    let numbers = |charge: &Charge| format!("{:?}", charge.numbers);
    let expected = Charge { numbers: slot_charge().numbers.held_by(next), ..slot_charge() };
    assert_eq!(numbers(&charges[0]), numbers(&expected));
}
