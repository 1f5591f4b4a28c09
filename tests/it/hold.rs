//! The held requests of a worker.

pub mod model;

use diana_limiter::{Held, QueueLine, Report};
use diana_policy::key::Key;
use diana_policy::settlement::Settlement;
use diana_store::permit::{End, Freed, Permit, Unsettled};
use diana_worker::hold::Queue;
use kit::store::ended;
use model::Model;
use std::rc::Rc;

const ANN: QueueLine = QueueLine { rule: 0, key: Key { hash: 1, second_hash: 1 }, plan: 0 };
const BOB: QueueLine = QueueLine { rule: 0, key: Key { hash: 2, second_hash: 2 }, plan: 0 };

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
    static FREED: Rc<Freed> = Rc::default();
}

/// The receipt of its charge equals its instant.
fn held(until: u64, line: Option<QueueLine>) -> Held {
    let QueueLine { rule, key, plan } = line.unwrap_or(ANN);
    let settlement = Settlement { receipt: until, since: 0, reserved: 1, used: 0 };
    let places = vec![Unsettled { rule: rule as u32, plan, ..ended(key, &settlement) }];
    let place = FREED.with(|freed| Permit::new(places, freed));
    Held { until, line, place, permit: Permit::NONE, report: Report::default() }
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

#[test]
fn each_leaves_at_its_turn_and_those_of_one_instant_as_they_came() {
    let mut queue = Queue::default();
    for (stream, until) in [(1, 30), (2, 10), (3, 20), (4, 10), (5, 30)] {
        queue.join(stream, 7, held(until, None));
    }
    assert_eq!(departures(queue), [(10, 2), (10, 4), (20, 3), (30, 1), (30, 5)]);
}

#[test]
fn whoever_is_behind_moves_up_by_one() {
    for gone in 1..=4 {
        let mut queue = queue(&[Some(ANN); 4]);
        // The last position always becomes free.
        assert_eq!(leave(&mut queue, gone), Some(40));
        let others: Vec<u32> = (1..=4).filter(|&stream| stream != gone).collect();
        let expected: Vec<(u64, u32)> = (1..).map(|n| n * 10).zip(others).collect();
        assert_eq!(departures(queue), expected, "{gone} left");
    }
}

#[test]
fn another_line_does_not_move() {
    let mut queue = queue(&[Some(ANN), Some(BOB), Some(ANN), Some(BOB), Some(ANN)]);
    assert_eq!(leave(&mut queue, 1), Some(50));
    assert_eq!(departures(queue), [(10, 3), (20, 2), (30, 5), (40, 4)]);
}

#[test]
fn a_line_of_another_configuration_does_not_move() {
    let mut queue = queue(&[Some(ANN), Some(ANN)]);
    queue.join(3, 8, held(30, Some(ANN)));
    assert_eq!(leave(&mut queue, 1), Some(20));
    assert_eq!(departures(queue), [(10, 2), (30, 3)]);
}

#[test]
fn whoever_several_rules_hold_neither_moves_up_nor_makes_room() {
    let mut queue = queue(&[Some(ANN), None, Some(ANN)]);
    assert_eq!(leave(&mut queue, 2), Some(20));
    assert_eq!(departures(queue), [(10, 1), (30, 3)]);
    let mut queue = self::queue(&[Some(ANN), None, Some(ANN)]);
    assert_eq!(leave(&mut queue, 1), Some(30));
    assert_eq!(departures(queue), [(10, 3), (20, 2)]);
}

#[test]
fn whoever_waits_no_longer_frees_nothing() {
    let mut queue = queue(&[Some(ANN), Some(ANN)]);
    assert_eq!(release(&mut queue, 10), Some(1));
    assert_eq!(leave(&mut queue, 1), None);
    assert_eq!(leave(&mut queue, 9), None);
    assert_eq!(leave(&mut queue, 2), Some(20));
    assert_eq!(queue.next(), None);
}

#[test]
fn a_random_crowd_loses_nobody() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    for _ in 0..300 {
        let lines: Vec<Option<QueueLine>> =
            (0..rng.usize(1..30)).map(|_| [Some(ANN), Some(BOB), None][rng.usize(0..3)]).collect();
        let mut queue = queue(&lines);
        let mut gone = Vec::new();
        for stream in 1..=lines.len() as u32 {
            if rng.u8(0..3) == 0 {
                leave(&mut queue, stream).unwrap();
                gone.push(stream);
            }
        }
        let mut left: Vec<(u64, u32)> = departures(queue);
        // No request waits longer than before, and each line keeps its order.
        assert!(left.iter().all(|(until, stream)| *until <= u64::from(*stream) * 10));
        for line in [Some(ANN), Some(BOB), None] {
            let of_line =
                left.iter().map(|(_, stream)| *stream).filter(|&s| lines[s as usize - 1] == line);
            assert!(of_line.is_sorted());
        }
        left.sort_by_key(|(_, stream)| *stream);
        let expected = (1..=lines.len() as u32).filter(|stream| !gone.contains(stream));
        assert!(left.iter().map(|(_, stream)| *stream).eq(expected));
    }
}

/// Requests of several lines and limiters arrive, are released and leave. Returned positions are
/// reused, as in stores.
#[test]
fn it_does_what_the_simple_model_does() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    let mut left = 0;
    for _ in 0..300 {
        let (mut queue, mut model) = (Queue::default(), Model::default());
        let (mut now, mut streams) = (0, Vec::new());
        for stream in 1..300 {
            let (limiter, line) = (rng.u32(7..9), [Some(ANN), Some(BOB), None][rng.usize(..3)]);
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
fn who_comes_later_and_may_go_earlier_goes_earlier() {
    let mut queue = queue(&[Some(ANN); 3]);
    queue.join(4, 7, held(15, Some(ANN)));
    assert_eq!(leave(&mut queue, 1), Some(30));
    assert_eq!(departures(queue), [(10, 2), (15, 4), (20, 3)]);
}

/// With linear time per request this took minutes without optimisation.
#[test]
fn a_crowd_may_leave_at_once() {
    const CROWD: u32 = 200_000;
    let mut queue = queue(&vec![Some(ANN); CROWD as usize]);
    for stream in 1..=CROWD / 2 {
        let last = u64::from(CROWD + 1 - stream) * 10;
        assert_eq!(leave(&mut queue, stream), Some(last));
    }
    assert_eq!(departures(queue)[0], (10, CROWD / 2 + 1));
}
