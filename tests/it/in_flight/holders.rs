//! The workers' knowledge of each other, at the exact instants of its changes: which workers live,
//! which may have been treated as dead, and the numbers of new workers.

use std::rc::Rc;

use diana_limiter::{Limiter, Verdict};
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, Now, SECOND};
use diana_store::permit::Permit;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use kit::store::gateway::START;

use super::limiter;

const BEAT: Micros = SECOND / 2;
const FORGOTTEN: Micros = SECOND;
const LIFE: Micros = 3 * SECOND / 2;
const AHEAD: Micros = 60 * SECOND;

/// The largest number.
const LAST: u64 = 1 << 43;

const KEY: &str = "diana/2/alone/holders";
const MARK: u64 = u64::from_le_bytes(*b"diana\0h\x01");

const DOCUMENT: &str = "limits: [{Url: /, rules: [{actor: device, in_flight: 1}]}]";

/// The last assigned number, and the living workers with the times of their reports.
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
    limiter: Limiter,
    clock: FakeClock,
}

impl Worker {
    fn new(data: &Rc<FakeSharedData>, at: Micros) -> Worker {
        let worker = Worker { limiter: limiter(DOCUMENT, data), clock: FakeClock::default() };
        worker.clock.0.set(Now { mono: at, ..START });
        worker
    }

    fn later(&mut self, ticks: Micros) -> &mut Worker {
        self.clock.0.set(self.clock.0.get().later(ticks));
        self
    }

    fn request(&mut self, caller: &str) -> Option<Permit> {
        let request = FakeRequest::get("/").header("x-device-id", caller);
        match self.limiter.decide(&request, &self.clock) {
            Verdict::Admit(permit, _) => Some(permit),
            Verdict::Refuse(_) => None,
            other => panic!("{other:?}"),
        }
    }

    /// Runs maintenance. Returns true if it must be called again for that.
    fn maintain(&mut self) -> bool {
        self.limiter.maintain(self.clock.0.get())
    }

    fn end(&mut self, permit: Permit) {
        self.limiter.finish(permit, &FakeEnding::answered(200), self.clock.0.get());
    }
}

/// Its slots under the old number do not count any more, and their release does not affect others.
#[test]
fn worker_stalled_for_a_second_gets_a_new_holder() {
    for (silent, is_forgotten) in [(FORGOTTEN - 1, false), (FORGOTTEN, true)] {
        let data = Rc::<FakeSharedData>::default();
        let mut worker = Worker::new(&data, START.mono);
        let permit = worker.request("a").unwrap();
        let before = known(&data).1[0].0;
        assert!(worker.later(silent).maintain());
        let all = known(&data).1;
        assert_eq!(all.iter().any(|(id, _)| *id == before), !is_forgotten || all.len() == 2);
        assert_eq!(all.last().map(|(id, _)| *id != before), Some(is_forgotten));
        // The silence of the former worker was too short for its slots to be free.
        assert!(worker.request("a").is_none());
        worker.end(permit);
        let next = worker.request("a");
        assert_eq!(next.is_some(), !is_forgotten, "after {silent}");
        next.into_iter().for_each(|permit| worker.end(permit));
        assert!(!worker.later(BEAT).maintain(), "it holds nothing");
        assert!(worker.later(LIFE).request("a").is_some());
    }
}

/// The value was lost, and others may have counted since.
#[test]
fn unregistered_holder_with_slots_has_expired() {
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
        // No number is assigned twice, however soon the next one is needed.
        assert_eq!(all[0].0 > before, holds);
        worker.end(other);
        if let Some(permit) = held {
            let again = worker.request("a").expect("the place is free");
            worker.end(permit);
            assert!(worker.request("a").is_none(), "the one that is in flight now is its own");
            worker.end(again);
        }
        assert!(!worker.later(BEAT).maintain(), "it holds nothing");
    }
}

/// Numbers grow with the clock, so that none is assigned again after the value was lost, and by one
/// if many workers start at once. No worker has the number zero, even in the first millisecond of a
/// machine.
#[test]
fn holder_number_exceeds_the_last_and_the_time() {
    let by_clock = START.mono >> 10;
    for (at, last, own) in [
        (START.mono, 0, by_clock + 1),
        (START.mono, by_clock - 1, by_clock + 1),
        (START.mono, by_clock, by_clock + 1),
        (START.mono, by_clock + 1, by_clock + 2),
        (START.mono, LAST - 1, LAST),
        // A larger number is damaged.
        (START.mono, LAST, by_clock + 1),
        (START.mono, u64::MAX, by_clock + 1),
        (0, 0, 1),
        (1023, 0, 1),
        (1024, 0, 2),
    ] {
        let data = Rc::<FakeSharedData>::default();
        write(&data, last, &[]);
        let permit = Worker::new(&data, at).request("a");
        assert_eq!(known(&data), (own, vec![(own, at)]), "after {last}");
        assert!(permit.is_some());
        if own < LAST {
            assert!(Worker::new(&data, at).request("a").is_none(), "it is taken");
        }
    }
}

/// The clocks of workers differ slightly. A time a minute in the future is damaged.
#[test]
fn slots_count_while_their_worker_lives() {
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
