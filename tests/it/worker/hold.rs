//! The held requests of a worker.

use crate::support::queue::Model;
use diana_limiter::{Held, QueueLine, Report};
use diana_policy::key::Key;
use diana_policy::settlement::Settlement;
use diana_store::permit::{CancelQueue, End, OpenCharge, Permit};
use diana_worker::hold::Queue;
use kit::store::ended;
use std::rc::Rc;

const LINE: QueueLine = QueueLine { rule: 0, key: Key { hash: 1, second_hash: 1 }, plan: 0 };
const OTHER_LINE: QueueLine = QueueLine { rule: 0, key: Key { hash: 2, second_hash: 2 }, plan: 0 };

/// A queue with these lines. Request `stream` waits until ten times its number.
fn queue(lines: &[Option<QueueLine>]) -> Queue {
    let mut queue = Queue::default();
    for (stream, line) in (1..).zip(lines) {
        queue.join(stream, 7, held(u64::from(stream) * 10, *line));
    }
    queue
}

thread_local! {
    /// The cancelled charges of this test.
    static FREED: Rc<CancelQueue> = Rc::default();
}

/// The receipt of its charge equals its instant.
fn held(until: u64, line: Option<QueueLine>) -> Held {
    let QueueLine { rule, key, plan } = line.unwrap_or(LINE);
    let settlement = Settlement { receipt: until, since: 0, reserved: 1, used: 0 };
    let places = vec![OpenCharge { rule: rule as u32, plan, ..ended(key, &settlement) }];
    let position = FREED.with(|freed| Permit::new(places.into_iter(), freed));
    Held { until, line, position, permit: Permit::NONE, report: Report::default() }
}

/// The instants of all departures.
fn departures(mut queue: Queue) -> Vec<(u64, u32)> {
    let mut all = Vec::new();
    while let Some(until) = queue.next() {
        assert_eq!(release(&mut queue, until - 1), None, "before its turn");
        all.push((until, release(&mut queue, until).unwrap()));
    }
    all
}

/// The next request with a turn by `now`.
fn release(queue: &mut Queue, now: u64) -> Option<u32> {
    let (stream, permit) = queue.release(now)?;
    permit.finish(End::Served);
    assert_eq!(FREED.with(|freed| freed.take()), [], "what is used does not come back");
    Some(stream)
}

/// The number of the only queue position that is returned when a client leaves. `None` if the
/// request was not held.
fn leave(queue: &mut Queue, stream: u32) -> Option<u64> {
    let permit = queue.leave(stream)?;
    permit.finish(End::Left);
    match FREED.with(|freed| freed.take())[..] {
        [place] => Some(place.receipt),
        ref other => panic!("{other:?} came back"),
    }
}

/// Requests of several lines and limiters arrive, are released and leave. Returned positions are
/// reused, as in stores.
#[test]
fn hold_queue_agrees_with_the_model() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    let mut left = 0;
    for _ in 0..300 {
        let (mut queue, mut model) = (Queue::default(), Model::default());
        let (mut now, mut streams) = (0, Vec::new());
        for stream in 1..300 {
            let (limiter, line) =
                (rng.u32(7..9), [Some(LINE), Some(OTHER_LINE), None][rng.usize(..3)]);
            let last = line.and_then(|line| model.last(limiter, line));
            let until = last.map_or(now, |last| last + 10) + rng.u64(..30) / 10 * 10;
            queue.join(stream, limiter, held(until, line));
            model.join(stream, limiter, until, line);
            streams.push(stream);
            while rng.u8(..5) < 2 && !streams.is_empty() {
                let gone = streams.swap_remove(rng.usize(..streams.len()));
                let place = leave(&mut queue, gone);
                assert_eq!(place, model.leave(gone));
                left += usize::from(place.is_some());
            }
            now += rng.u64(..8);
            loop {
                let released = release(&mut queue, now);
                assert_eq!(released, model.release(now));
                if released.is_none() {
                    break;
                }
            }
            assert_eq!(queue.next(), model.next());
        }
        let rest = departures(queue);
        assert!(rest.iter().all(|(until, stream)| model.release(*until) == Some(*stream)));
        assert_eq!(model.next(), None);
    }
    assert!(left > 5_000, "too tame: {left} left");
}

/// A request that may leave earlier than others in its line has a separate position.
#[test]
fn later_request_with_an_earlier_turn_leaves_first() {
    let mut queue = queue(&[Some(LINE); 3]);
    queue.join(4, 7, held(15, Some(LINE)));
    assert_eq!(leave(&mut queue, 1), Some(30));
    assert_eq!(departures(queue), [(10, 2), (15, 4), (20, 3)]);
}

/// With linear time per request this took minutes without optimisation.
#[test]
fn many_requests_leave_in_linear_time() {
    const CROWD: u32 = 200_000;
    let mut queue = queue(&vec![Some(LINE); CROWD as usize]);
    for stream in 1..=CROWD / 2 {
        let last = u64::from(CROWD + 1 - stream) * 10;
        assert_eq!(leave(&mut queue, stream), Some(last));
    }
    assert_eq!(departures(queue)[0], (10, CROWD / 2 + 1));
}
