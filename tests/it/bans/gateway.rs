//! Several workers ban together.

use std::cell::Cell;
use std::rc::Rc;

use diana_core::ban::WORDS;
use diana_core::key::Key;
use diana_core::policy::Scope;
use diana_core::port::SharedData;
use diana_core::store::bans::Bans;
use diana_core::store::slots::traffic::Traffic;
use diana_core::store::stores::Stores;
use diana_core::store::tables::Tables;
use diana_core::time::SECOND;
use kit::fake::{Asked, FakeSharedData};

use super::flood::key;
use super::{ANN, BAN};

pub const TICK: u64 = SECOND / 10;

pub fn open<D: SharedData + 'static>(data: &Rc<D>) -> Box<dyn Bans> {
    open_with(data).0
}

/// And what is done with shared data.
fn open_with<D: SharedData + 'static>(data: &Rc<D>) -> (Box<dyn Bans>, Rc<Traffic>) {
    let mut tables = Tables::default();
    let mut stores = Stores::new("test".into(), data.clone(), &mut tables);
    (stores.open_bans(Scope::Gateway, BAN, 1, 1000), stores.traffic.clone())
}

/// What a value of the rule is called.
fn name(what: &str) -> String {
    format!("diana/2/test/{:016x}/{what}", BAN.fingerprint(1))
}

#[test]
fn refusals_of_all_workers_lead_to_one_ban_and_all_soon_know_it() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    for workers in 1..5 {
        let data: Rc<FakeSharedData> = Rc::default();
        let mut workers: Vec<_> = (0..workers).map(|_| open(&data)).collect();
        let (mut now, mut refusals, mut begun) = (rng.u64(0..1 << 40), 0, None);
        let mut known_by = vec![None; workers.len()];
        let mut next_tick = now + TICK;
        while known_by.iter().any(Option::is_none) {
            now += rng.u64(0..SECOND / 50);
            if now >= next_tick {
                workers.iter_mut().for_each(|worker| worker.tidy(now));
                next_tick = now + TICK;
            }
            let number = rng.usize(0..workers.len());
            if workers[number].left(ANN, now) == 0 {
                workers[number].refused(ANN, now);
                refusals += 1;
                if refusals == BAN.after {
                    begun = Some(now);
                }
            } else {
                known_by[number].get_or_insert(now);
            }
            assert!(now < begun.unwrap_or(now) + 3 * TICK, "not everybody knows");
        }
        let begun = begun.expect("banned too early");
        let first = known_by.iter().flatten().min().unwrap();
        assert!(*first < begun + 2 * TICK);
        let lefts: Vec<u64> = workers.iter_mut().map(|worker| worker.left(ANN, now)).collect();
        assert!(lefts.iter().all(|left| *left == lefts[0]), "{lefts:?}");
        assert!((begun..begun + TICK + SECOND / 50).contains(&(now + lefts[0] - BAN.period)));
        let bans: u64 = workers.iter_mut().map(|worker| worker.begun()).sum();
        assert_eq!(bans, 1, "it begins once");
    }
}

#[test]
fn no_refusal_is_lost_when_workers_write_at_once() {
    let data: Rc<FakeSharedData> = Rc::default();
    let (mut ours, traffic) = open_with(&data);
    let mut theirs = open(&data);
    for bans in [&mut ours, &mut theirs] {
        bans.refused(ANN, 0);
    }
    theirs.refused(ANN, 0);
    // Theirs is passed on between our look and our write, again and again.
    let written = Rc::new(Cell::new(0));
    let count = written.clone();
    *data.before_swap.borrow_mut() = Some(Box::new(move |_, _| {
        if count.get() < 3 {
            count.set(count.get() + 1);
            theirs.tidy(0);
            (0..2).for_each(|_| theirs.refused(ANN, 0));
        }
    }));
    ours.tidy(0);
    *data.before_swap.borrow_mut() = None;
    assert_eq!(written.get(), 3);
    assert_eq!((traffic.conflicts.get(), traffic.exhausted.get()), (3, 0));
    // Counted so far: one, and three times two.
    (0..2).for_each(|_| ours.refused(ANN, 0));
    assert_eq!(ours.left(ANN, 0), 0);
    ours.refused(ANN, 0);
    assert_eq!(ours.left(ANN, 0), BAN.period);
}

/// How often shared data was asked and written while something was done.
fn cost(data: &Asked, does: impl FnOnce()) -> (u64, u64) {
    let before = (data.reads.get(), data.writes.get());
    does();
    (data.reads.get() - before.0, data.writes.get() - before.1)
}

/// Refusals are counted by one write a tick, and the record is looked at and written when a ban begins, not later.
#[test]
fn refusals_cost_one_write_a_tick_and_a_ban_one_more() {
    let data: Rc<Asked> = Rc::default();
    let mut bans = open(&data);
    assert_eq!(cost(&data, || bans.refused(ANN, 0)), (1, 1), "how many sets there are");
    let mut costs = |refusals: u64, now: u64| {
        cost(&data, || {
            (0..refusals).for_each(|_| bans.refused(ANN, now));
            bans.tidy(now);
        })
    };
    assert_eq!(costs(3, 0), (1, 1));
    assert_eq!(costs(0, 0), (0, 0));
    assert_eq!(costs(5, 1), (1, 1));
    assert_eq!(costs(1, 1), (2, 2), "a ban begins");
    for now in [2, BAN.period, BAN.period + 1, BAN.period + 2] {
        assert_eq!(costs(1, now), (1, 1), "at {now}");
    }
}

/// Callers who were looked for once are known until the next ban begins.
#[test]
fn where_somebody_is_banned_others_are_looked_for_once() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    let data: Rc<Asked> = Rc::default();
    let mut bans = open(&data);
    (0..BAN.after).for_each(|_| bans.refused(ANN, 0));
    let others: Vec<Key> = (0..100).map(|_| key(&mut rng)).collect();
    let mut all = || cost(&data, || others.iter().for_each(|other| _ = bans.left(*other, 0))).0;
    assert_eq!(all(), 100);
    // A few share a line.
    let again = all();
    assert!(again < 30, "{again}");
}

/// What is said of a ban that is longer than any can be is not told on.
#[test]
fn a_ban_that_was_not_written_here_is_not_told_of() {
    let data: Rc<FakeSharedData> = Rc::default();
    let mut bans = open(&data);
    bans.refused(ANN, 0);
    bans.tidy(0);
    let set = data.keys().into_iter().find(|key| *key != name("slots")).unwrap();
    let (mut value, _) = data.get(&set).unwrap();
    let mut rows = value.chunks_exact_mut(8 * (1 + WORDS));
    let row = rows.find(|row| row[..8] == ANN.hash.to_le_bytes()).unwrap();
    row[8..16].fill(0x7f);
    data.set(&set, &value);
    let (before, _) = data.get(&name("slots")).unwrap();
    bans.refused(ANN, TICK);
    bans.tidy(TICK);
    assert_eq!(data.get(&name("slots")).unwrap().0, before);
}

#[test]
fn where_nobody_is_banned_nothing_is_asked_but_the_record() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    let data: Rc<Asked> = Rc::default();
    let mut bans = open(&data);
    let mut looks = |now| {
        let caller = key(&mut rng);
        cost(&data, || assert_eq!(bans.left(caller, now), 0))
    };
    assert_eq!(looks(0), (1, 1), "how many sets there are");
    for n in 1..1000 {
        assert_eq!(looks(n * TICK), (1, 0));
        assert_eq!(looks(n * TICK), (0, 0));
    }
    assert_eq!(data.data.keys(), [name("slots")]);
}

#[test]
fn shared_data_that_is_lost_or_spoiled_bans_nobody_for_longer_than_a_ban_can_last() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    let data: Rc<FakeSharedData> = Rc::default();
    let mut bans = open(&data);
    let mut now = SECOND;
    for _ in 0..200 {
        for key in data.keys() {
            let Some((mut value, _)) = data.get(&key) else { continue };
            match rng.u8(0..4) {
                0 => data.clear(),
                1 => value.truncate(rng.usize(0..=value.len())),
                2 => value.iter_mut().for_each(|byte| *byte = rng.u8(..)),
                _ => value.fill(0xff),
            }
            data.set(&key, &value);
        }
        for _ in 0..2 * BAN.after {
            now += TICK;
            let key = if rng.bool() { ANN } else { key(&mut rng) };
            assert!(bans.left(key, now) <= 2 * BAN.max);
            bans.refused(key, now);
        }
        bans.tidy(now);
    }
    assert!(data.keys().iter().all(|key| key.len() < 80));
}

#[test]
fn what_a_worker_knew_before_a_ban_it_does_not_rely_on_after_it() {
    let data: Rc<FakeSharedData> = Rc::default();
    let (mut ours, mut theirs) = (open(&data), open(&data));
    let bob = Key { hash: 0xb0b, second_hash: 9 };
    (0..BAN.after).for_each(|_| theirs.refused(bob, 0));
    // Somebody is banned, so ours asks about her, too.
    assert_eq!((ours.left(bob, 0), ours.left(ANN, 0)), (BAN.period, 0));
    (0..BAN.after).for_each(|_| theirs.refused(ANN, 0));
    assert_eq!(ours.left(ANN, TICK), BAN.period - TICK);
    assert_eq!(ours.left(bob, TICK), BAN.period - TICK);
    assert_eq!((ours.left(ANN, BAN.period), ours.begun(), theirs.begun()), (0, 0, 2));
}

#[test]
fn a_ban_that_its_writer_did_not_tell_of_is_told_by_the_next() {
    let data: Rc<FakeSharedData> = Rc::default();
    let (mut ours, mut theirs) = (open(&data), open(&data));
    assert_eq!(ours.left(ANN, 0), 0);
    let (before, _) = data.get(&name("slots")).unwrap();
    (0..BAN.after).for_each(|_| theirs.refused(ANN, 0));
    // As if their VM had ended between the two writes.
    data.set(&name("slots"), &before);
    assert_eq!(ours.left(ANN, TICK), 0, "nobody says that anybody is banned");
    (0..BAN.after).for_each(|_| ours.refused(ANN, TICK));
    assert_eq!(ours.left(ANN, TICK), BAN.period - TICK);
    assert_eq!(open(&data).left(ANN, TICK), BAN.period - TICK);
    assert_eq!((ours.begun(), theirs.begun()), (0, 1), "it is the same ban");
    // It is told once, not with each refusal.
    let (told, _) = data.get(&name("slots")).unwrap();
    ours.refused(ANN, TICK);
    ours.tidy(TICK);
    assert_eq!(data.get(&name("slots")).unwrap().0, told);
}

#[test]
fn nobody_keeps_a_place_for_ever_whatever_is_written_there() {
    let data: Rc<FakeSharedData> = Rc::default();
    let mut bans = open(&data);
    bans.refused(ANN, 0);
    bans.tidy(0);
    let set = data.keys().into_iter().find(|key| *key != name("slots")).unwrap();
    let (mut value, _) = data.get(&set).unwrap();
    // Her set is full of others who are not banned, with the highest levels and counts.
    for (other, row) in (1_u64..).zip(value.chunks_exact_mut(8 * (1 + WORDS))) {
        row.fill(0xff);
        row[..8].copy_from_slice(&other.to_le_bytes());
        row[8..16].fill(0);
    }
    data.set(&set, &value);
    (0..BAN.after).for_each(|_| bans.refused(ANN, TICK));
    bans.tidy(TICK);
    assert_eq!(bans.left(ANN, TICK), BAN.period);
}

#[test]
fn a_ban_that_was_told_of_is_not_told_of_again() {
    let data: Rc<FakeSharedData> = Rc::default();
    let (mut ours, mut theirs) = (open(&data), open(&data));
    // Ours looks at the record before the ban begins, and not again so soon.
    assert_eq!(ours.left(ANN, 0), 0);
    (0..BAN.after).for_each(|_| theirs.refused(ANN, 0));
    let (told, _) = data.get(&name("slots")).unwrap();
    (0..BAN.after).for_each(|_| ours.refused(ANN, 1));
    assert_eq!(ours.left(ANN, 1), BAN.period - 1);
    assert_eq!(data.get(&name("slots")).unwrap().0, told);
}
