//! Data that workers share.

use std::cell::Cell;
use std::rc::Rc;

use diana_policy::Hot;
use diana_policy::port::SharedData;
use diana_policy::time::SECOND;
use diana_store::hot::spotter::{Spotter, Storage};
use kit::fake::FakeSharedData;

use super::workers::{OVER, PER, hot, whole};

fn spotter(data: &Rc<FakeSharedData>) -> Spotter {
    Spotter::new(hot(), Storage::Gateway(data.clone(), "hot".into()), None)
}

fn see(spotter: &mut Spotter, key: u64, times: u64) {
    (0..times).for_each(|_| _ = spotter.count(whole(key)));
}

#[test]
fn key_is_hot_by_the_sum_over_workers() {
    let data = Rc::new(FakeSharedData::default());
    let mut workers: Vec<Spotter> = (0..4).map(|_| spotter(&data)).collect();
    let mut now = 100 * SECOND;
    for worker in &mut workers {
        see(worker, 7, OVER / 4 + 1);
        see(worker, 8, OVER / 4);
    }
    for _ in 0..2 {
        now += SECOND / 10;
        workers.iter_mut().for_each(|worker| _ = worker.maintain(now));
    }
    assert_eq!(workers.iter_mut().map(|worker| worker.change).sum::<i64>(), 1);
    for worker in &mut workers {
        see(worker, 7, 1);
        worker.maintain(now);
        assert!(worker.is_hot(7) && !worker.is_hot(8));
    }
    let lists = workers.iter().filter(|worker| worker.list.is_some()).count();
    assert_eq!(lists, 1, "one worker reports it");
    while workers.iter_mut().fold(false, |more, worker| worker.maintain(now) | more) {
        now += SECOND / 10;
    }
    assert!(now >= 100 * SECOND + PER);
    assert_eq!(workers.iter_mut().map(|worker| worker.change).sum::<i64>(), 0);
}

#[test]
fn lost_race_loses_no_count() {
    let data = Rc::new(FakeSharedData::default());
    let (mut one, mut two) = (spotter(&data), spotter(&data));
    see(&mut one, 7, OVER / 2 + 1);
    see(&mut two, 7, OVER / 2);
    let other = Cell::new(Some(two));
    *data.before_swap.borrow_mut() = Some(Box::new(move |_, _| {
        let two = other.take();
        two.into_iter().for_each(|mut two| _ = two.maintain(50 * SECOND));
    }));
    one.maintain(50 * SECOND);
    assert!(one.is_hot(7));
}

#[test]
fn foreign_value_counts_as_empty() {
    let longer = |bytes: &[u8]| [bytes, &[1; 8]].concat();
    let data = Rc::new(FakeSharedData::default());
    let mut worker = spotter(&data);
    see(&mut worker, 7, OVER + 1);
    worker.maintain(50 * SECOND);
    let (sound, _) = data.get("hot").unwrap();
    // From the future, as after a restart of the machine.
    let ahead = {
        let data = Rc::new(FakeSharedData::default());
        let mut worker = spotter(&data);
        see(&mut worker, 7, 2 * OVER);
        worker.maintain(5_000 * SECOND);
        data.get("hot").unwrap().0
    };
    let mut earlier = sound.clone();
    earlier[8..16].fill(0);
    let corrupt =
        [vec![], vec![1; 7], vec![0xff; 96], vec![0xff; 480], longer(&sound), ahead, earlier];
    for bytes in corrupt {
        data.set("hot", &bytes);
        let mut worker = spotter(&data);
        see(&mut worker, 9, 3);
        worker.maintain(50 * SECOND);
        assert!(!worker.is_hot(7) && !worker.is_hot(9), "{bytes:?}");
        assert_eq!(data.get("hot").unwrap().0.len(), 3 * 48);
    }
}

#[test]
fn window_memory_is_bounded() {
    let data = Rc::new(FakeSharedData::default());
    let mut worker = spotter(&data);
    for key in 0..100_000_u64 {
        worker.count(whole(key.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        if key % 5_000 == 0 {
            worker.maintain(50 * SECOND + key);
        }
    }
    worker.maintain(51 * SECOND);
    let bytes = data.get("hot").unwrap().0.len() as u64;
    assert!(bytes <= Spotter::memory(false).shared, "{bytes}");
}

/// The gauge still counts callers that were hot in the former window.
#[test]
fn changed_window_length_resets_the_gauge() {
    let data = Rc::new(FakeSharedData::default());
    let mut before = spotter(&data);
    see(&mut before, 7, 2 * OVER);
    see(&mut before, 8, 2 * OVER);
    before.maintain(100 * SECOND);
    assert_eq!(before.change, 2);
    let storage = Storage::Gateway(data.clone(), "hot".into());
    let mut after = Spotter::new(Hot { per: 2 * PER, ..hot() }, storage, None);
    see(&mut after, 7, 1);
    after.maintain(100 * SECOND);
    assert!(!after.is_hot(7));
    assert_eq!(after.change, -2);
}

/// The clocks of workers are not read at the same instant.
#[test]
fn only_the_next_slice_ahead_counts() {
    let slice = PER / 5;
    for (ahead, counts) in [(0, true), (slice, true), (2 * slice, false)] {
        let data = Rc::new(FakeSharedData::default());
        let (mut one, mut two) = (spotter(&data), spotter(&data));
        see(&mut one, 7, OVER / 2 + 1);
        see(&mut two, 7, OVER / 2);
        one.maintain(100 * SECOND + ahead);
        two.maintain(100 * SECOND);
        assert_eq!(two.is_hot(7), counts, "{ahead} ahead");
    }
}

/// A worker reads twice more for counts of others, and writes only new ones.
#[test]
fn idle_worker_reads_twice_and_writes_nothing() {
    let data = Rc::new(FakeSharedData::default());
    let mut worker = spotter(&data);
    see(&mut worker, 7, 1);
    assert!(worker.maintain(100 * SECOND));
    let (_, written) = data.get("hot").unwrap();
    assert!(worker.maintain(100 * SECOND + SECOND / 10));
    assert!(!worker.maintain(100 * SECOND + SECOND / 5));
    assert_eq!(data.get("hot").unwrap().1, written);
}

#[test]
fn names_are_read_only_with_reveal_and_once() {
    for reveal in [true, false] {
        let mut worker = Spotter::new(Hot { reveal, ..hot() }, Storage::Worker, None);
        assert_eq!(worker.is_nameless(7), reveal);
        worker.learn(7, "ann".into());
        assert!(!worker.is_nameless(7));
        assert_eq!(worker.is_nameless(8), reveal);
    }
}

/// Neighbouring callers in the table: a hot one without requests still takes its place.
#[test]
fn idle_hot_caller_hides_no_neighbour() {
    const NEXT: u64 = 7 + 4096;
    let data = Rc::new(FakeSharedData::default());
    let mut worker = spotter(&data);
    see(&mut worker, 7, 2 * OVER);
    worker.maintain(50 * SECOND);
    for _ in 0..2 {
        see(&mut worker, NEXT, OVER / 2 + 1);
        worker.maintain(50 * SECOND);
    }
    assert!(worker.is_hot(7) && worker.is_hot(NEXT));
    assert_eq!(rows(&data), 2);
}

/// The number of callers of the window in shared data.
fn rows(data: &FakeSharedData) -> usize {
    data.get("hot").unwrap().0.len() / 48 - 2
}

/// Otherwise a worker would have no room for other callers.
#[test]
fn hot_callers_take_at_most_their_part_of_the_table() {
    let data = Rc::new(FakeSharedData::default());
    let mut worker = spotter(&data);
    for key in 0..1_500 {
        see(&mut worker, key, OVER + 1);
    }
    worker.maintain(50 * SECOND);
    assert_eq!((0..1_500).filter(|key| worker.is_hot(*key)).count(), 1024);
}

/// The clocks of workers are not read at the same instant, so a slice begins earlier for one.
#[test]
fn list_of_the_next_slice_is_not_repeated() {
    let slice = PER / 5;
    let data = Rc::new(FakeSharedData::default());
    let mut workers = [spotter(&data), spotter(&data)];
    see(&mut workers[0], 7, 2 * OVER);
    workers[0].maintain(100 * SECOND);
    for worker in &mut workers {
        see(worker, 7, 1);
        worker.maintain(100 * SECOND);
    }
    assert!(workers[0].list.take().is_some() && workers[1].list.is_none());
    let reports = |worker: &mut Spotter, now| {
        see(worker, 7, 2 * OVER);
        worker.maintain(now);
        worker.list.take().is_some()
    };
    // A window later on the clock that is ahead.
    let now = 100 * SECOND + PER;
    assert!(reports(&mut workers[0], now));
    assert!(!reports(&mut workers[1], now - slice));
}
