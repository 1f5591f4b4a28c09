//! Enforcement in a worker of bans that Redis counts.

use std::cell::RefCell;
use std::rc::Rc;

use diana_policy::Scope;
use diana_policy::key::Key;
use diana_policy::redis::OnFailure;
use diana_policy::time::SECOND;
use diana_redis::outbox::{Operation, Outbox};
use diana_redis::shard::Shards;
use diana_store::bans::Bans;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use kit::bans::Calls;
use kit::fake::CountingData;

use diana_redis::protocol::Question;

use super::{BAN, CALLER, KEYS, OTHER, TICK, Worker, authority, ban_reply};
use crate::redis::client;

fn open(data: &Rc<CountingData>) -> Worker {
    Worker::new(Scope::Global, data)
}

/// A worker with this outbox. Operators may reset bans if `resets_bans` is true.
fn open_with(resets_bans: bool, outbox: Outbox, data: &Rc<CountingData>) -> Worker {
    let mut tables = Tables::default();
    let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
    stores.resets_bans = resets_bans;
    let outbox = Rc::new(RefCell::new(outbox));
    let fleet = Some(authority(&BAN, KEYS, &outbox));
    let bans = Bans::new(BAN, Scope::Global, 1, KEYS, fleet, &mut stores);
    Worker { bans, outbox, ..open(data) }
}

fn together(on_failure: OnFailure) -> Outbox {
    Outbox::new(on_failure, Shards::ONE)
}

/// The refusals sent to Redis, by caller. Zero is only a query.
fn sent(worker: &Worker) -> Vec<(Key, u64)> {
    let refusals = |it| match it {
        Operation::Ban(0, refusals) => (refusals.caller, refusals.refusals),
        other => panic!("{other:?}"),
    };
    worker.outbox.borrow_mut().take(usize::MAX).into_iter().map(refusals).collect()
}

#[test]
fn refusals_that_complete_a_ban_are_sent_at_once() {
    for on_failure in [OnFailure::Gateway, OnFailure::Deny] {
        let mut worker = open_with(false, together(on_failure), &Rc::default());
        for (refusals, at_once) in [(BAN.after, true), (BAN.after - 1, false), (0, false)] {
            (0..refusals).for_each(|_| worker.bans.refused(CALLER, 0));
            assert_eq!(worker.outbox.borrow().has_operations(), at_once);
            worker.bans.maintain_at(0);
            let expected = (refusals > 0).then_some((CALLER, refusals));
            assert_eq!(sent(&worker), Vec::from_iter(expected));
        }
        assert_eq!(worker.bans.begun, 0, "Redis decides");
    }
}

/// A request under a lease does not query Redis, and would miss a ban that began in another
/// gateway.
#[test]
fn ban_of_a_busy_caller_is_queried_once_a_second() {
    let mut worker = open(&Rc::default());
    for (after, asks) in [
        (0, 0),
        (SECOND - 1, 0),
        (SECOND, 1),
        (SECOND + 1, 0),
        (2 * SECOND - 1, 0),
        (2 * SECOND, 1),
    ] {
        assert_eq!(worker.bans.left(CALLER, SECOND + after), 0);
        assert_eq!(sent(&worker).len(), asks, "{after} later");
    }
    worker.on_reply(CALLER, &ban_reply(BAN.period, false), SECOND);
    for seconds in 1..100 {
        let now = SECOND + seconds * SECOND;
        assert_eq!(worker.bans.left(CALLER, now), BAN.period - seconds * SECOND);
        assert_eq!(sent(&worker), [], "a banned caller is asked about");
    }
    assert_eq!(worker.bans.left(CALLER, SECOND + BAN.period), 0);
    assert_eq!(sent(&worker), [(CALLER, 0)]);
}

#[test]
fn refusals_of_two_gateways_ban_in_both_within_a_second() {
    let mut gateways = [open(&Rc::default()), open(&Rc::default())];
    gateways[1].redis = gateways[0].redis.clone();
    let now = SECOND;
    assert!(gateways.iter_mut().all(|gateway| gateway.left(CALLER, now) == 0));
    for number in 0..BAN.after as usize {
        gateways[number % 2].refused(CALLER, now);
    }
    gateways.iter_mut().for_each(|gateway| gateway.maintain(now));
    assert_eq!(gateways.each_ref().map(|gateway| gateway.bans.begun), [0, 1]);
    let now = 2 * SECOND;
    assert!(gateways.iter_mut().all(|it| it.left(CALLER, now) == BAN.period - SECOND));
}

#[test]
fn ban_of_redis_holds_in_all_workers() {
    let data = Rc::<CountingData>::default();
    let (mut ours, mut theirs) = (open(&data), open(&data));
    assert_eq!((ours.bans.left(CALLER, 0), theirs.bans.left(CALLER, 0)), (0, 0));
    let on_reply = |bans: &mut Worker, reply, now| {
        let before = data.writes.get();
        let left = bans.on_reply(CALLER, &reply, now);
        (left, data.writes.get() - before)
    };
    assert_eq!(on_reply(&mut ours, ban_reply(0, false), 0), (0, 0), "the caller is not banned");
    assert_eq!(
        on_reply(&mut ours, ban_reply(2 * BAN.max + 1, false), 0),
        (0, 0),
        "no ban is so long"
    );
    assert_eq!(on_reply(&mut ours, ban_reply(BAN.period, true), 0), (BAN.period, 2));
    assert_eq!(on_reply(&mut ours, ban_reply(BAN.period - 2, false), 2), (BAN.period - 2, 0));
    assert_eq!(std::mem::take(&mut ours.bans.begun), 1);
    // The ban was lifted, and another one began in another gateway.
    let later = 12 * SECOND;
    assert_eq!(on_reply(&mut ours, ban_reply(BAN.period, false), later), (BAN.period, 2));
    for bans in [&mut ours.bans, &mut theirs.bans] {
        let now = later + SECOND;
        assert_eq!((bans.left(CALLER, now), bans.left(OTHER, now)), (BAN.period - SECOND, 0));
    }
    // Another caller's ban is as short as the difference that two replies about one ban may have.
    let now = later + 2 * SECOND;
    assert_eq!(theirs.on_reply(OTHER, &ban_reply(SECOND, false), now), SECOND);
    assert_eq!(ours.bans.left(OTHER, now + TICK), SECOND - TICK);
    assert_eq!((ours.bans.begun, theirs.bans.begun), (0, 0));
}

#[test]
fn question_about_a_pending_request_counts_no_refusal() {
    for (scope, asks) in [(Scope::Global, true), (Scope::Gateway, false)] {
        let worker = Worker::new(scope, &Rc::<CountingData>::default());
        let asked = worker.bans.ask(CALLER, None);
        assert_eq!(asked.is_some(), asks);
        if let Some(question) = asked {
            let Question::Ban(asked) = question else { panic!("{question:?}") };
            assert_eq!((asked.sets, asked.refusals, asked.caller), (None, 0, CALLER));
        }
    }
}

/// Another gateway may lift a ban that this one knows.
#[test]
fn ban_is_queried_every_second_if_operators_can_end_it() {
    for resets_bans in [false, true] {
        let mut worker = open_with(resets_bans, together(OnFailure::Gateway), &Rc::default());
        // A ban that other workers have stored may be over.
        assert_eq!(worker.bans.left(CALLER, SECOND), 0);
        assert_eq!(sent(&worker).len(), usize::from(resets_bans));
        worker.on_reply(CALLER, &ban_reply(BAN.period, false), SECOND);
        let banned = |now: u64| BAN.period + SECOND - now;
        let now = 2 * SECOND - 1;
        assert_eq!(worker.bans.left(CALLER, now), banned(now));
        assert_eq!(sent(&worker), []);
        let now = 4 * SECOND;
        let left = worker.bans.left(CALLER, now);
        let expected = if resets_bans { (0, vec![(CALLER, 0)]) } else { (banned(now), vec![]) };
        assert_eq!((left, sent(&worker)), expected);
        // Ann is still banned.
        let left = banned(now);
        assert_eq!(worker.on_reply(CALLER, &ban_reply(left, false), now), left);
        assert_eq!(worker.bans.left(CALLER, now + 1), left - 1);
        // Ann is not banned in Redis. Without operators no gateway can have lifted her ban.
        worker.on_reply(CALLER, &ban_reply(0, false), now);
        let left = if resets_bans { 0 } else { banned(now) - (SECOND - 1) };
        assert_eq!(worker.bans.left(CALLER, now + SECOND - 1), left);
    }
}

#[test]
fn gateway_without_redis_counts_its_refusals() {
    let alone = || {
        let mut failing = client::Worker::of(&Rc::default());
        failing.fail(0);
        failing.outbox
    };
    let mut worker = open_with(false, alone(), &Rc::default());
    worker.refused_times(BAN.after, CALLER, SECOND);
    assert_eq!((worker.bans.left(CALLER, SECOND), worker.bans.begun), (BAN.period, 1));
    (0..200).for_each(|seconds| _ = worker.bans.left(OTHER, seconds * SECOND));
    assert_eq!(sent(&worker), []);
    // Refusals collected before Redis failed count, too.
    let mut worker = open(&Rc::default());
    (0..BAN.after - 1).for_each(|_| worker.bans.refused(CALLER, SECOND));
    *worker.outbox.borrow_mut() = alone();
    worker.bans.maintain_at(SECOND);
    assert_eq!(worker.bans.left(CALLER, SECOND), 0);
    worker.bans.refused(CALLER, SECOND);
    worker.bans.maintain_at(SECOND);
    assert_eq!(worker.bans.left(CALLER, SECOND), BAN.period);
}

#[test]
fn reply_about_a_free_caller_keeps_its_refusals() {
    let data = Rc::<CountingData>::default();
    let mut worker = open_with(true, together(OnFailure::Gateway), &data);
    worker.bans.refused(CALLER, SECOND);
    assert_eq!(worker.on_reply(CALLER, &ban_reply(0, false), SECOND), 0);
    assert!(data.data.keys().len() <= 1, "a set was written");
    worker.bans.maintain_at(SECOND);
    assert_eq!(sent(&worker), [(CALLER, 1)]);
}
