//! The cost of in-flight slots in a gateway, and their separation by caller.

use std::cell::Cell;
use std::rc::Rc;

use diana_limiter::sizing;
use diana_limiter::{Limiter, Verdict};
use diana_policy::key::Seed;
use diana_policy::port::SharedData;
use diana_policy::time::{Micros, SECOND};
use diana_store::permit::Permit;
use kit::ending::FakeEnding;
use kit::fake::{CountingData, FakeClock, FakeMetrics, FakeRequest, FakeSharedData};
use kit::store::gateway::START;

use super::limiter;

/// The interval of a worker's reports that it lives.
const BEAT: Micros = SECOND / 2;

pub fn document(keys: usize, limit: usize) -> String {
    format!(
        "keys: {keys}\nlimits: [{{Url: /, rules: [{{name: r, actor: device, in_flight: {limit}}}]}}]"
    )
}

pub fn clock() -> FakeClock {
    FakeClock::at(START)
}

/// Sends a request of a caller to a worker. Returns its permit if it is admitted.
pub fn request(limiter: &mut Limiter, caller: usize, clock: &FakeClock) -> Option<Permit> {
    let request = FakeRequest::get("/").header("x-device-id", caller.to_string());
    match limiter.decide(&request, 0, clock) {
        Verdict::Admit(permit, _) => Some(permit),
        Verdict::Refuse(_) => None,
        other => panic!("{other:?}"),
    }
}

fn end(limiter: &mut Limiter, permit: Permit, clock: &FakeClock) {
    limiter.finish(permit, &FakeEnding::answered(200), clock.0.get());
}

/// A read and a write on arrival, and the same at the end. Twice a second one more write for all of
/// them.
#[test]
fn request_costs_two_reads_and_two_writes() {
    let data = Rc::new(CountingData::default());
    let policy = diana_config::Reader::default().policy(document(100, 9).as_bytes()).unwrap();
    let mut limiter = Limiter::standalone(policy, Seed { k0: 1, k1: 2 }, data.clone()).unwrap();
    let clock = clock();
    let beats_written = Rc::new(Cell::new(0));
    let count = beats_written.clone();
    *data.data.before_swap.borrow_mut() = Some(Box::new(move |_, key| {
        count.set(count.get() + u64::from(key.ends_with("/holders")));
    }));
    let long = request(&mut limiter, 7, &clock).unwrap();
    assert_eq!(beats_written.get(), 1);
    let (reads, writes) = (data.reads.get(), data.writes.get());
    const REQUESTS: u64 = 100;
    for _ in 0..REQUESTS {
        clock.0.set(clock.0.get().later(BEAT / 5));
        let permit = request(&mut limiter, 7, &clock).unwrap();
        end(&mut limiter, permit, &clock);
        limiter.maintain(clock.0.get());
    }
    let beats = REQUESTS / 5;
    assert_eq!(beats_written.get(), 1 + beats);
    let (reads, writes) = (data.reads.get() - reads, data.writes.get() - writes);
    assert_eq!((reads, writes), (2 * REQUESTS + beats, 2 * REQUESTS + beats));
    end(&mut limiter, long, &clock);
    let metrics = FakeMetrics::default();
    limiter.flush("n", &metrics);
    // The first one read the number of slots.
    assert_eq!(metrics.of("diana.n.shared.writes").cast_unsigned() + beats + 1, data.writes.get());
    assert_eq!(metrics.of("diana.n.shared.conflicts"), 0);
}

/// A value has room for 32 callers. When it is full, further callers share a count. They continue
/// to share it when there is room again, until that count is zero.
#[test]
fn callers_without_room_share_a_count() {
    const ROOM: usize = 32;
    let (data, clock) = (Rc::default(), clock());
    let mut limiter = limiter(&document(16, 2), &data);
    let mut own: Vec<Permit> =
        (0..ROOM).map(|caller| request(&mut limiter, caller, &clock).unwrap()).collect();
    let shared = request(&mut limiter, 40, &clock).unwrap();
    let other = request(&mut limiter, 41, &clock).unwrap();
    assert!(request(&mut limiter, 42, &clock).is_none(), "there are two for all of them");
    let metrics = FakeMetrics::default();
    limiter.flush("n", &metrics);
    assert_eq!(metrics.of("diana.n.rule.r.overflow"), 3);
    // There is room for one more caller now.
    for permit in [own.pop().unwrap(), own.pop().unwrap(), other] {
        end(&mut limiter, permit, &clock);
    }
    let second = request(&mut limiter, 40, &clock).expect("its second one");
    assert!(request(&mut limiter, 40, &clock).is_none(), "a third one of two");
    let next = request(&mut limiter, 0, &clock).expect("it has its own");
    for permit in [shared, second, next] {
        end(&mut limiter, permit, &clock);
    }
    limiter.flush("n", &metrics);
    let before = metrics.of("diana.n.rule.r.overflow");
    let permits: Vec<Permit> = (0..2).map(|_| request(&mut limiter, 40, &clock).unwrap()).collect();
    limiter.flush("n", &metrics);
    assert_eq!(metrics.of("diana.n.rule.r.overflow"), before, "it has its own");
    for permit in permits.into_iter().chain(own) {
        end(&mut limiter, permit, &clock);
    }
}

/// Concurrent writes delay it, and do not prevent it.
#[test]
fn failed_release_is_repeated_later() {
    let (data, clock) = (Rc::<FakeSharedData>::default(), clock());
    let mut limiter = limiter(&document(16, 1), &data);
    let permit = request(&mut limiter, 7, &clock).unwrap();
    *data.before_swap.borrow_mut() = Some(Box::new(|data, key| {
        let (value, _) = data.get(key).unwrap();
        data.set(key, &value);
    }));
    end(&mut limiter, permit, &clock);
    data.before_swap.borrow_mut().take();
    assert!(request(&mut limiter, 7, &clock).is_some());
}

/// With eight workers that hold slots of each caller.
#[test]
fn slots_take_the_declared_memory() {
    for (keys, actor) in [(1, "device"), (16, "device"), (200, "device"), (200, "all")] {
        let (data, clock) = (Rc::<FakeSharedData>::default(), clock());
        let document = document(keys, 100_000).replace("device", actor);
        let policy = diana_config::Reader::default().policy(document.as_bytes()).unwrap();
        let reported = sizing::memory(&policy.limits, policy.keys);
        let mut open = Vec::new();
        for _ in 0..8 {
            let mut limiter = limiter(&document, &data);
            open.extend((0..20 * keys.max(10)).map(|caller| request(&mut limiter, caller, &clock)));
        }
        let is_slot = |key: &String| key.ends_with("/all") || key.contains('.');
        let taken: usize = data
            .keys()
            .into_iter()
            .filter(is_slot)
            .map(|key| 192 + data.get(&key).unwrap().0.len())
            .sum();
        let taken = taken as u64;
        assert_eq!((reported.worker, reported.shared), (0, taken), "{keys} keys of {actor}");
        let alone = document.replace("in_flight", "scope: local, in_flight");
        let policy = diana_config::Reader::default().policy(alone.as_bytes()).unwrap();
        let reported = sizing::memory(&policy.limits, policy.keys);
        assert!(reported.worker > 0 && reported.shared == 0, "{reported:?}");
        let line = sizing::summary(&policy);
        let number = format!(
            " 1 rule; callers take at most {} KiB in each worker and 0 KiB",
            reported.worker.div_ceil(1024)
        );
        assert!(line.contains(&number), "{line}");
    }
}
