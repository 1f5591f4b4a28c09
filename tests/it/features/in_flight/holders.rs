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
const HALF: i64 = BEAT.cast_signed();
const REGULAR: Micros = 4 * SECOND / 5;
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
        match self.limiter.decide(&request, 0, &self.clock) {
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

/// Only a worker with regular heartbeats removes another one.
#[test]
fn worker_without_heartbeats_is_removed_by_a_regular_one() {
    for (own, silent, is_removed) in [
        (REGULAR - 1, LIFE, true),
        (REGULAR - 1, LIFE - 1, false),
        (REGULAR, LIFE, false),
        (REGULAR, 10 * LIFE, false),
    ] {
        let data = Rc::<FakeSharedData>::default();
        let mut dead = Worker::new(&data, START.mono);
        let permit = dead.request("a").unwrap();
        let mut remover = Worker::new(&data, START.mono + silent - own);
        let _other = remover.request("b").unwrap();
        assert!(remover.later(own).maintain());
        assert_eq!(known(&data).1.len(), 2 - usize::from(is_removed), "{own} {silent}");
        assert_eq!(remover.request("a").is_some(), is_removed, "{own} {silent}");
        dead.end(permit);
    }
}

/// It keeps its number, and its slots count again before it takes another one.
#[test]
fn removed_worker_writes_its_slots_again() {
    for beats in [true, false] {
        let data = Rc::<FakeSharedData>::default();
        let mut worker = Worker::new(&data, START.mono);
        let permit = worker.request("a").unwrap();
        let (last, before) = known(&data);
        write(&data, last, &[]);
        let mut other = Worker::new(&data, START.mono + LIFE);
        let taken = other.request("a").expect("the slot was dropped");
        worker.later(LIFE);
        if beats {
            assert!(worker.maintain());
        } else {
            assert!(worker.request("b").is_some());
        }
        assert!(known(&data).1.iter().any(|(id, _)| *id == before[0].0));
        other.end(taken);
        assert!(worker.request("a").is_none() && other.request("a").is_none());
        worker.end(permit);
        assert!(other.request("a").is_some());
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
fn slots_count_until_their_worker_is_removed() {
    for (seen, lives) in [
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
        write(&data, last, &[(all[0].0, START.mono.saturating_add_signed(seen))]);
        let mut second = Worker::new(&data, START.mono);
        assert!(second.request("a").is_none(), "as of {seen}");
        // It has slots, or it has seen that the other one is dead.
        assert_eq!(second.maintain(), !lives);
        let own = second.request("b");
        assert!(own.is_some() && permit.is_some());
        write(
            &data,
            last + 1,
            &[(all[0].0, START.mono.saturating_add_signed(seen + HALF)), known(&data).1[1]],
        );
        second.later(BEAT).maintain();
        assert_eq!(known(&data).1.len(), 1 + usize::from(lives), "as of {seen}");
        assert_eq!(second.request("a").is_none(), lives, "as of {seen}");
    }
}
