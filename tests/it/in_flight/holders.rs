//! What workers know of each other, at the very instants at which it changes: who lives, who may have been taken for dead,
//! and which number whoever comes goes by.

use std::rc::Rc;

use diana_core::engine::Engine;
use diana_core::permit::Permit;
use diana_core::port::SharedData;
use diana_core::time::{Micros, Now, SECOND};
use diana_core::verdict::Verdict;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use kit::store::gateway::START;

use super::engine;
use super::reports::Sums;

const BEAT: Micros = SECOND / 2;
const FORGOTTEN: Micros = SECOND;
const LIFE: Micros = 3 * SECOND / 2;
const AHEAD: Micros = 60 * SECOND;

/// No number is larger.
const LAST: u64 = 1 << 43;

const KEY: &str = "diana/2/alone/holders";
const MARK: u64 = u64::from_le_bytes(*b"diana\0h\x01");

const DOCUMENT: &str = "limits: [{Url: /, rules: [{actor: device, in_flight: 1}]}]";

/// The last number that was given out, and who lives since when.
fn known(data: &FakeSharedData) -> (u64, Vec<(u64, Micros)>) {
    let bytes = data.get(KEY).unwrap().0;
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|it| u64::from_le_bytes(*it)).collect();
    assert_eq!(words[0], MARK);
    (words[1], words[2..].as_chunks().0.iter().map(|&[id, at]| (id, at)).collect())
}

fn write(data: &FakeSharedData, last: u64, all: &[(u64, Micros)]) {
    let all = all.iter().flat_map(|&(id, at)| [id, at]);
    let words = [MARK, last].into_iter().chain(all);
    data.set(KEY, &words.flat_map(u64::to_le_bytes).collect::<Vec<_>>());
}

/// A worker at an instant.
struct Worker {
    engine: Engine,
    clock: FakeClock,
}

impl Worker {
    fn new(data: &Rc<FakeSharedData>, at: Micros) -> Worker {
        let worker = Worker { engine: engine(DOCUMENT, data), clock: FakeClock::default() };
        worker.clock.0.set(Now { mono: at, ..START });
        worker
    }

    fn later(&mut self, ticks: Micros) -> &mut Worker {
        self.clock.0.set(self.clock.0.get().later(ticks));
        self
    }

    fn request(&mut self, caller: &str) -> Option<Permit> {
        let request = FakeRequest::get("/").header("x-device-id", caller);
        match self.engine.decide(&request, &self.clock) {
            Verdict::Admit(permit, _) => Some(permit),
            Verdict::Refuse(_) => None,
            other => panic!("{other:?}"),
        }
    }

    /// Sees to what it holds. Whether it is to be called again for that.
    fn tidy(&mut self) -> bool {
        self.engine.tidy(self.clock.0.get())
    }

    fn end(&mut self, permit: Permit) {
        self.engine.settle(permit, &FakeEnding::answered(200), self.clock.0.get());
    }
}

#[test]
fn a_worker_says_that_it_lives_twice_a_second_and_not_more_often() {
    for (silent, said) in [(BEAT - 1, 0), (BEAT, BEAT), (BEAT + 1, BEAT + 1)] {
        let data = Rc::<FakeSharedData>::default();
        let mut worker = Worker::new(&data, START.mono);
        let permit = worker.request("a").unwrap();
        assert!(worker.later(silent).tidy());
        assert_eq!(known(&data).1[0].1, START.mono + said);
        worker.end(permit);
        // Who holds nothing says nothing.
        assert!(!worker.later(BEAT).tidy());
        assert_eq!(known(&data).1[0].1, START.mono + said);
    }
}

/// What it took under the old number does not count any more, and gives back nothing of anybody else's.
#[test]
fn who_stood_still_for_a_second_goes_by_another_number_and_holds_nothing() {
    for (silent, is_forgotten) in [(FORGOTTEN - 1, false), (FORGOTTEN, true)] {
        let data = Rc::<FakeSharedData>::default();
        let mut worker = Worker::new(&data, START.mono);
        let permit = worker.request("a").unwrap();
        let before = known(&data).1[0].0;
        assert!(worker.later(silent).tidy());
        let all = known(&data).1;
        assert_eq!(all.iter().any(|(id, _)| *id == before), !is_forgotten || all.len() == 2);
        assert_eq!(all.last().map(|(id, _)| *id != before), Some(is_forgotten));
        // The one before has not been silent for so long that its places are free.
        assert!(worker.request("a").is_none());
        worker.end(permit);
        let next = worker.request("a");
        assert_eq!(next.is_some(), !is_forgotten, "after {silent}");
        next.into_iter().for_each(|permit| worker.end(permit));
        assert!(!worker.later(BEAT).tidy(), "it holds nothing");
        assert!(worker.later(LIFE).request("a").is_some());
    }
}

/// Who holds nothing loses nothing by standing still.
#[test]
fn who_holds_nothing_keeps_its_number_however_long_it_says_nothing() {
    let data = Rc::<FakeSharedData>::default();
    let mut worker = Worker::new(&data, START.mono);
    let mut numbers = Vec::new();
    for silent in [0, BEAT, FORGOTTEN, LIFE, AHEAD, 1000 * AHEAD] {
        let permit = worker.later(silent).request("a").unwrap();
        let all = known(&data).1;
        assert_eq!(all.len(), 1);
        numbers.push(all[0].0);
        worker.end(permit);
    }
    assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
}

/// The value was lost, and others may have counted anew since.
#[test]
fn who_is_not_among_those_that_live_has_been_forgotten_if_it_holds_anything() {
    for holds in [true, false] {
        let data = Rc::<FakeSharedData>::default();
        let mut worker = Worker::new(&data, START.mono);
        let permit = worker.request("a").unwrap();
        let before = known(&data).1[0].0;
        let held = match holds {
            true => Some(permit),
            false => {
                worker.end(permit);
                None
            }
        };
        write(&data, before, &[]);
        let other = worker.later(BEAT).request("b").unwrap();
        let (_, all) = known(&data);
        assert_eq!(all.len(), 1);
        // No number is given out twice, however soon the next one is wanted.
        assert_eq!(all[0].0 > before, holds);
        worker.end(other);
        if let Some(permit) = held {
            let again = worker.request("a").expect("the place is free");
            worker.end(permit);
            assert!(worker.request("a").is_none(), "the one that is in flight now is its own");
            worker.end(again);
        }
        assert!(!worker.later(BEAT).tidy(), "it holds nothing");
    }
}

/// Numbers grow by the clock, so that none is given out again when the value was lost, and by one where many come at once.
#[test]
fn the_next_number_is_one_more_than_the_last_and_than_the_time() {
    let by_clock = START.mono >> 10;
    for (last, own) in [
        (0, by_clock + 1),
        (by_clock - 1, by_clock + 1),
        (by_clock, by_clock + 1),
        (by_clock + 1, by_clock + 2),
        (LAST - 1, LAST),
        // Whatever is larger was written by nobody.
        (LAST, by_clock + 1),
        (u64::MAX, by_clock + 1),
    ] {
        let data = Rc::<FakeSharedData>::default();
        write(&data, last, &[]);
        let permit = Worker::new(&data, START.mono).request("a");
        assert_eq!(known(&data), (own, vec![(own, START.mono)]), "after {last}");
        assert!(permit.is_some());
    }
}

/// From its first millisecond on: no worker goes by zero, under which nobody is found to live.
#[test]
fn the_first_worker_of_a_machine_that_has_just_started_lives() {
    for at in [0, 1, 1023, 1024] {
        let data = Rc::<FakeSharedData>::default();
        let mut first = Worker::new(&data, at);
        let permit = first.request("a").unwrap();
        assert_eq!(known(&data), ((at >> 10) + 1, vec![((at >> 10) + 1, at)]));
        assert!(Worker::new(&data, at).request("a").is_none(), "it is taken");
        first.end(permit);
        assert!(Worker::new(&data, at).request("a").is_some());
    }
}

/// Clocks of workers differ a little; what was said to be in a minute was said by nobody.
#[test]
fn places_count_while_their_worker_lives() {
    for (said, lives) in [
        (-(LIFE.cast_signed()), false),
        (1 - LIFE.cast_signed(), true),
        (0, true),
        (AHEAD.cast_signed() - 1, true),
        (AHEAD.cast_signed(), false),
    ] {
        let data = Rc::<FakeSharedData>::default();
        let mut first = Worker::new(&data, START.mono);
        let permit = first.request("a");
        let (last, all) = known(&data);
        write(&data, last, &[(all[0].0, START.mono.saturating_add_signed(said))]);
        let mut second = Worker::new(&data, START.mono);
        assert_eq!(second.request("a").is_none(), lives, "as of {said}");
        assert!(second.request("b").is_some() && permit.is_some());
        assert_eq!(known(&data).1.len(), 1 + usize::from(lives));
    }
}

/// A place that lies there under no number is nobody's.
#[test]
fn nobody_holds_a_place_under_the_number_zero() {
    let data = Rc::<FakeSharedData>::default();
    let mut worker = Worker::new(&data, START.mono);
    let permit = worker.request("a").unwrap();
    let is_slot = |key: &&String| key.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let slot = data.keys().iter().find(is_slot).unwrap().clone();
    let mut bytes = data.get(&slot).unwrap().0;
    // How many it holds stays, and whose they are is gone.
    let word = u64::from_le_bytes(bytes[16..24].try_into().unwrap()) & ((1 << 20) - 1);
    assert_eq!(word, 1);
    bytes[16..24].copy_from_slice(&word.to_le_bytes());
    data.set(&slot, &bytes);
    let mut other = Worker::new(&data, START.mono);
    assert!(other.request("a").is_some(), "before it has a number");
    drop(permit);
}

/// A place that could not be taken is not held: whoever holds nothing need not say that it lives.
#[test]
fn who_was_always_too_late_holds_nothing() {
    let data = Rc::<FakeSharedData>::default();
    let mut worker = Worker::new(&data, START.mono);
    let permit = worker.request("a").unwrap();
    worker.end(permit);
    *data.before_swap.borrow_mut() = Some(Box::new(|data, key| {
        if let Some((value, _)) = data.get(key).filter(|_| !key.ends_with("/holders")) {
            data.set(key, &value);
        }
    }));
    let told = |worker: &mut Worker| {
        let metrics = Sums::default();
        worker.engine.flush("n", &metrics);
        metrics.of("diana.n.shared.exhausted")
    };
    assert_eq!(told(&mut worker), 0);
    assert!(worker.request("a").is_none());
    assert_eq!(told(&mut worker), 1);
    data.before_swap.borrow_mut().take();
    assert!(!worker.later(BEAT).tidy());
    let permit = worker.request("a");
    assert!(worker.later(BEAT).tidy() && permit.is_some());
}
