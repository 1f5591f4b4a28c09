//! Bans in shared data: accesses, and lost or damaged values.

use std::rc::Rc;

use diana_policy::Scope;
use diana_policy::ban::WORDS;
use diana_policy::key::Key;
use diana_policy::port::SharedData;
use diana_policy::time::SECOND;
use kit::fake::{CountingData, FakeSharedData};

use super::{BAN, CALLER, TICK, Worker, key};

fn open<D: SharedData + 'static>(data: &Rc<D>) -> Worker {
    Worker::new(Scope::Gateway, data)
}

/// The key of a value of the rule.
fn name(what: &str) -> String {
    format!("diana/2/test/{:016x}/{what}", BAN.fingerprint(1))
}

/// The record that all workers read.
fn record(data: &FakeSharedData) -> Vec<u8> {
    data.get(&name("slots")).unwrap().0
}

/// The only set, and its key.
fn only_set(data: &FakeSharedData) -> (String, Vec<u8>) {
    let set = data.keys().into_iter().find(|key| *key != name("slots")).unwrap();
    let value = data.get(&set).unwrap().0;
    (set, value)
}

/// The number of reads and writes of shared data by `does`.
fn cost(data: &CountingData, does: impl FnOnce()) -> (u64, u64) {
    let before = (data.reads.get(), data.writes.get());
    does();
    (data.reads.get() - before.0, data.writes.get() - before.1)
}

#[test]
fn refusals_cost_one_write_a_tick_and_a_ban_one_more() {
    let data: Rc<CountingData> = Rc::default();
    let mut worker = open(&data);
    assert_eq!(cost(&data, || assert_eq!(worker.left(CALLER, 0), 0)), (1, 1), "the number of sets");
    let mut costs = |refusals: u64, now: u64| {
        worker.left(key(&mut fastrand::Rng::new()), now);
        cost(&data, || {
            worker.refused_times(refusals, CALLER, now);
            worker.maintain(now);
        })
    };
    assert_eq!(costs(4, 0), (1, 1));
    assert_eq!(costs(0, 0), (0, 0));
    assert_eq!(costs(5, 1), (1, 1));
    assert_eq!(costs(1, 1), (2, 2), "a ban begins");
    for now in [2, BAN.period, BAN.period + 1, BAN.period + 2] {
        assert_eq!(costs(1, now), (1, 1), "at {now}");
    }
}

#[test]
fn set_is_read_once_for_each_caller_until_the_next_ban() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    let data: Rc<CountingData> = Rc::default();
    let mut worker = open(&data);
    worker.refused_times(BAN.after, CALLER, 0);
    let others: Vec<Key> = (0..100).map(|_| key(&mut rng)).collect();
    let mut reads = || cost(&data, || others.iter().for_each(|it| _ = worker.left(*it, 0))).0;
    assert!((100..130).contains(&reads()));
    // A few callers share a line.
    let again = reads();
    assert!(again < 60, "{again}");
}

#[test]
fn only_the_record_is_read_while_no_caller_is_banned() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    let data: Rc<CountingData> = Rc::default();
    let mut worker = open(&data);
    let mut looks = |now| {
        let caller = key(&mut rng);
        cost(&data, || assert_eq!(worker.left(caller, now), 0))
    };
    assert_eq!(looks(0), (1, 1), "the number of sets");
    for n in 1..1000 {
        assert_eq!(looks(n * TICK), (1, 0));
        assert_eq!(looks(n * TICK), (0, 0));
    }
    assert_eq!(data.data.keys(), [name("slots")]);
}

#[test]
fn lost_and_spoiled_values_ban_no_caller_for_longer_than_a_ban() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    let data: Rc<FakeSharedData> = Rc::default();
    let mut worker = open(&data);
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
            let key = if rng.bool() { CALLER } else { key(&mut rng) };
            assert!(worker.left(key, now) <= 2 * BAN.max);
            worker.refused(key, now);
        }
        worker.maintain(now);
    }
    assert!(data.keys().iter().all(|key| key.len() < 80));
}

/// The end of the ban is later than possible.
#[test]
fn ban_of_a_spoiled_set_is_not_put_into_the_record() {
    let data: Rc<FakeSharedData> = Rc::default();
    let mut worker = open(&data);
    worker.refused(CALLER, 0);
    worker.maintain(0);
    let (set, mut value) = only_set(&data);
    let mut rows = value.chunks_exact_mut(8 * (1 + WORDS));
    let row = rows.find(|row| row[..8] == CALLER.hash.to_le_bytes()).unwrap();
    row[8..16].fill(0x7f);
    data.set(&set, &value);
    let before = record(&data);
    worker.refused(CALLER, TICK);
    worker.maintain(TICK);
    assert_eq!(record(&data), before);
}

#[test]
fn spoiled_row_of_a_free_caller_is_given_up() {
    let data: Rc<FakeSharedData> = Rc::default();
    let mut worker = open(&data);
    worker.refused(CALLER, 0);
    worker.maintain(0);
    // The caller's set is full of callers that are not banned, with the highest levels and counts.
    let (set, mut value) = only_set(&data);
    for (other, row) in (1_u64..).zip(value.chunks_exact_mut(8 * (1 + WORDS))) {
        row.fill(0xff);
        row[..8].copy_from_slice(&other.to_le_bytes());
        row[8..16].fill(0);
    }
    data.set(&set, &value);
    worker.refused_times(BAN.after, CALLER, TICK);
    assert_eq!(worker.left(CALLER, TICK), BAN.period);
}
