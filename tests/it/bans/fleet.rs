//! Bans that Redis counts, as a worker goes by them.

mod lines;

use std::collections::HashMap;
use std::rc::Rc;

use diana_core::key::Key;
use diana_core::policy::redis::OnFailure;
use diana_core::redis::bans::RedisBans;
use diana_core::redis::handle::{Handle, Operation};
use diana_core::redis::part::Parts;
use diana_core::redis::protocol::BanReply;
use diana_core::store::stores::Stores;
use diana_core::store::tables::Tables;
use diana_core::time::SECOND;
use kit::fake::{Asked, FakeSharedData};

use super::{ANN, BAN};
use crate::fleet::Worker;

const BOB: Key = Key { hash: 0xb0b, second_hash: 9 };

pub fn open(data: &Rc<Asked>) -> RedisBans {
    let mut tables = Tables::default();
    let stores = Stores::new("test".into(), data.clone(), &mut tables);
    RedisBans::new(BAN, 1, 1000, (0, Parts::ONE), &stores)
}

pub fn together() -> Handle {
    Handle::new(OnFailure::Gateway, Parts::ONE)
}

/// Whom Redis is told of, and how many refusals of each.
fn told(handle: &mut Handle) -> Vec<(Key, u64)> {
    let refusals = |it| match it {
        Operation::Ban(0, refusals) => (refusals.caller, refusals.refusals),
        other => panic!("{other:?}"),
    };
    handle.take(usize::MAX).into_iter().map(refusals).collect()
}

/// What Redis says of a caller.
pub fn says(left: u64, begins: bool, recent: u64) -> BanReply {
    BanReply { retry: None, left, begins, recent, overflow: false }
}

#[test]
fn redis_is_told_of_every_refusal_once() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    let (mut bans, mut handle) = (open(&Rc::default()), together());
    let (mut refused, mut counted): (HashMap<u64, u64>, HashMap<u64, u64>) = Default::default();
    let mut now = 0;
    for _ in 0..10_000 {
        now += rng.u64(0..SECOND / 10);
        match rng.u8(0..8) {
            0 => bans.tidy(now, &mut handle),
            _ => {
                // Some share a line.
                let number = rng.u64(..2000);
                let caller = Key { hash: number, second_hash: number };
                bans.refused(caller, now, &mut handle);
                *refused.entry(caller.hash).or_default() += 1;
            }
        }
        for (caller, refusals) in told(&mut handle) {
            assert!(refusals > 0);
            *counted.entry(caller.hash).or_default() += refusals;
        }
    }
    bans.tidy(now, &mut handle);
    for (caller, refusals) in told(&mut handle) {
        *counted.entry(caller.hash).or_default() += refusals;
    }
    assert_eq!(refused, counted);
    assert_eq!(bans.begun(), 0, "that is for Redis to say");
}

#[test]
fn refusals_that_may_be_enough_for_a_ban_are_told_at_once() {
    let (mut bans, mut handle) = (open(&Rc::default()), together());
    let mut until_told = |bans: &mut RedisBans| {
        let mut refusals = 0;
        while !handle.has_operations() {
            bans.refused(ANN, 0, &mut handle);
            refusals += 1;
        }
        assert_eq!(told(&mut handle), [(ANN, refusals)]);
        refusals
    };
    assert_eq!(until_told(&mut bans), BAN.after);
    // Those that Redis has counted for all gateways are among them; what it says to a look has no number.
    for (recent, more) in [(3, 7), (0, 7), (9, 1), (4, 6)] {
        assert_eq!(bans.take(ANN, &says(0, false, recent), 0, &mut together()), 0);
        assert_eq!(until_told(&mut bans), more, "{recent} are known");
    }
}

/// A request under a lease does not ask, so somebody else's ban would not be noticed.
#[test]
fn whoever_keeps_coming_is_looked_for_once_a_second() {
    let (mut bans, mut handle) = (open(&Rc::default()), together());
    let mut looks = |bans: &mut RedisBans, now| {
        assert_eq!(bans.left(ANN, now, &mut handle), 0);
        told(&mut handle).len()
    };
    let start = SECOND;
    // Whoever comes for the first time is not known to keep coming.
    for (after, expected) in [
        (0, 0),
        (SECOND - 1, 0),
        (SECOND, 1),
        (SECOND + 1, 0),
        (2 * SECOND - 1, 0),
        (2 * SECOND, 1),
    ] {
        assert_eq!(looks(&mut bans, start + after), expected, "{after} later");
    }
    bans.take(ANN, &says(BAN.period, false, 0), start, &mut handle);
    for seconds in 1..100 {
        let now = start + seconds * SECOND;
        assert_eq!(bans.left(ANN, now, &mut handle), BAN.period - seconds * SECOND);
        assert!(told(&mut handle).is_empty(), "nobody looks for one who is banned");
    }
    assert_eq!(bans.left(ANN, start + BAN.period, &mut handle), 0);
    assert_eq!(told(&mut handle), [(ANN, 0)]);
}

#[test]
fn what_redis_says_of_a_ban_holds_for_all_workers_and_is_written_once() {
    let data = Rc::<Asked>::default();
    let (mut ours, mut theirs, mut handle) = (open(&data), open(&data), together());
    let writes = |does: &mut dyn FnMut()| {
        let before = data.writes.get();
        does();
        data.writes.get() - before
    };
    // Whoever comes first counts the sets.
    assert_eq!((ours.left(ANN, 0, &mut handle), theirs.left(ANN, 0, &mut handle)), (0, 0));
    let mut take = |bans: &mut RedisBans, reply, now| {
        let mut left = 0;
        let writes = writes(&mut || left = bans.take(ANN, &reply, now, &mut handle));
        (left, writes)
    };
    assert_eq!(take(&mut ours, says(0, false, 3), 0), (0, 0), "she is not banned");
    assert_eq!(take(&mut ours, says(2 * BAN.max + 1, false, 3), 0), (0, 0), "no ban is so long");
    assert_eq!(take(&mut ours, says(BAN.period, true, 10), 0), (BAN.period, 2));
    assert_eq!(take(&mut ours, says(BAN.period - 2, true, 10), 2), (BAN.period - 2, 0));
    assert_eq!((ours.begun(), ours.begun()), (1, 0), "it begins once");
    let now = SECOND;
    for bans in [&mut ours, &mut theirs] {
        assert_eq!(bans.left(ANN, now, &mut handle), BAN.period - now);
        assert_eq!(bans.left(BOB, now, &mut handle), 0);
    }
    // Another one's ban, which began elsewhere.
    assert_eq!(theirs.take(BOB, &says(SECOND, false, 1), now, &mut handle), SECOND);
    assert_eq!(ours.left(BOB, now + SECOND / 10, &mut handle), SECOND * 9 / 10);
    assert_eq!((ours.begun(), theirs.begun()), (0, 0));
}

/// An operator did, through this gateway or another one.
#[test]
fn a_ban_that_was_set_holds_until_it_ends_or_is_lifted() {
    let data = Rc::<Asked>::default();
    let (mut ours, mut theirs, mut handle) = (open(&data), open(&data), together());
    assert_eq!((ours.left(ANN, 0, &mut handle), theirs.left(ANN, 0, &mut handle)), (0, 0));
    ours.hear_set(ANN, BAN.period, SECOND);
    for bans in [&mut ours, &mut theirs] {
        assert_eq!(bans.left(ANN, 2 * SECOND, &mut handle), BAN.period - SECOND);
        assert_eq!(bans.left(BOB, 2 * SECOND, &mut handle), 0);
    }
    ours.hear_set(ANN, 0, 3 * SECOND);
    assert_eq!(ours.left(ANN, 4 * SECOND, &mut handle), 0);
    assert_eq!(theirs.left(ANN, 4 * SECOND, &mut handle), 0);
}

/// An operator's order says for how long; a question changes nothing.
#[test]
fn what_redis_is_asked_to_set_is_said() {
    let bans = open(&Rc::default());
    for length in [BAN.period, 0] {
        assert_eq!(bans.sets(ANN, length).sets, Some(length));
    }
    assert_eq!((bans.question(ANN).sets, bans.question(ANN).refusals), (None, 0));
    assert_eq!(bans.sets(ANN, BAN.period).refusals, 0);
}

/// What a caller was refused for is lifted with its ban, so that it begins with nothing.
#[test]
fn whoever_is_lifted_is_banned_again_only_for_as_many_refusals_as_ever() {
    for recent in [0, BAN.after - 1] {
        let (mut bans, mut handle) = (open(&Rc::default()), together());
        match recent {
            0 => (1..BAN.after).for_each(|_| bans.refused(ANN, SECOND, &mut handle)),
            _ => _ = bans.take(ANN, &says(0, false, recent), SECOND, &mut handle),
        }
        assert_eq!(told(&mut handle), []);
        bans.hear_set(ANN, 0, SECOND);
        let mut refusals = 0;
        while !handle.has_operations() {
            bans.refused(ANN, SECOND, &mut handle);
            refusals += 1;
        }
        assert_eq!((refusals, told(&mut handle)), (BAN.after, vec![(ANN, BAN.after)]));
    }
}

/// Where a ban may be lifted in another gateway, what is known here is true for a second.
#[test]
fn whoever_is_banned_is_asked_about_where_bans_are_lifted() {
    for lifts in [false, true] {
        let mut tables = Tables::default();
        let mut stores = Stores::new("test".into(), Rc::<Asked>::default(), &mut tables);
        stores.lifts = lifts;
        let mut bans = RedisBans::new(BAN, 1, 1000, (0, Parts::ONE), &stores);
        let mut handle = together();
        // What others have left here of a ban may be over, so that it is asked about at once.
        assert_eq!(bans.left(ANN, SECOND, &mut handle), 0);
        assert_eq!(told(&mut handle).len(), usize::from(lifts));
        bans.take(ANN, &says(BAN.period, false, 0), SECOND, &mut handle);
        let banned = |now: u64| BAN.period + SECOND - now;
        let now = 2 * SECOND - 1;
        assert_eq!(bans.left(ANN, now, &mut handle), banned(now));
        assert_eq!(told(&mut handle), []);
        let now = 4 * SECOND;
        let left = bans.left(ANN, now, &mut handle);
        let asked = told(&mut handle);
        match lifts {
            true => assert_eq!((left, asked), (0, vec![(ANN, 0)])),
            false => assert_eq!((left, asked), (banned(now), vec![])),
        }
        // She still is.
        let left = banned(now);
        assert_eq!(bans.take(ANN, &says(left, false, 0), now, &mut handle), left);
        assert_eq!(bans.left(ANN, now + 1, &mut handle), left - 1);
        // Redis says that she is not banned any more: there nobody can have lifted it, unless that may be.
        bans.take(ANN, &says(0, false, 0), now, &mut handle);
        let left = if lifts { 0 } else { banned(now) };
        assert_eq!(bans.left(ANN, now + SECOND - 1, &mut handle), left.saturating_sub(SECOND - 1));
    }
}

#[test]
fn a_gateway_that_is_alone_bans_by_itself() {
    let mut worker = Worker::of(&Rc::<FakeSharedData>::default());
    worker.fail(0);
    let alone = &mut worker.handle;
    let mut bans = open(&Rc::default());
    (0..BAN.after).for_each(|_| bans.refused(ANN, SECOND, alone));
    assert_eq!(bans.left(ANN, SECOND, alone), BAN.period);
    assert_eq!(bans.begun(), 1);
    // Nobody is looked for, however long somebody keeps coming.
    (0..200).for_each(|seconds| _ = bans.left(BOB, seconds * SECOND, alone));
    assert!(!alone.has_operations());
    // What was refused before it was alone and not told of yet counts here, too.
    let mut bans = open(&Rc::default());
    (0..BAN.after - 1).for_each(|_| bans.refused(ANN, SECOND, &mut together()));
    bans.tidy(SECOND, alone);
    bans.refused(ANN, SECOND, alone);
    assert_eq!(bans.left(ANN, SECOND, alone), BAN.period);
    // Refusals while Redis is there count, whatever `on_failure` is.
    let mut deny = Handle::new(OnFailure::Deny, Parts::ONE);
    let mut bans = open(&Rc::default());
    (0..BAN.after).for_each(|_| bans.refused(ANN, SECOND, &mut deny));
    assert_eq!(told(&mut deny), [(ANN, BAN.after)]);
}

/// Where Redis knows of no ban there is nothing to lift, nor are refusals forgotten that it has not heard of.
#[test]
fn that_nobody_is_banned_changes_nothing() {
    let data = Rc::<Asked>::default();
    let mut tables = Tables::default();
    let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
    stores.lifts = true;
    let mut bans = RedisBans::new(BAN, 1, 1000, (0, Parts::ONE), &stores);
    let mut handle = together();
    bans.refused(ANN, SECOND, &mut handle);
    let writes = data.writes.get();
    assert_eq!(bans.take(ANN, &says(0, false, 0), SECOND, &mut handle), 0);
    assert_eq!(data.writes.get(), writes);
    bans.tidy(SECOND, &mut handle);
    assert_eq!(told(&mut handle), [(ANN, 1)]);
}
