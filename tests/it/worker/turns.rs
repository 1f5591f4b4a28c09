//! Requests that are held until their turn.

use super::{MILLISECOND, Thread};
use diana_policy::time::SECOND;

/// A permit each hundredth of a second. Requests wait for up to twenty seconds.
const LINE: &str = "limits: [{Url: /, rules: [{actor: account, unit: second, rpu: 100, algo: LB, scope: local, \
                    max_delay: 20s, max_queue: 3000}]}]";
const TURN: u64 = SECOND / 100;

#[test]
fn held_request_resumes_exactly_at_its_turn() {
    let mut thread = Thread::with(LINE);
    assert!(thread.request(1, 10, "ann"), "nobody is before her");
    let start = thread.host.now.get().mono;
    for stream in 11..60 {
        assert!(!thread.request(1, stream, "ann"));
    }
    let mut seen = 0;
    while let Some((fires, root)) = thread.host.next() {
        thread.host.set(fires);
        thread.tick(root);
        let resumed = thread.host.resumed.borrow();
        for stream in &resumed[seen..] {
            let turn = start + u64::from(stream - 10) * TURN;
            assert!((turn..turn + 2 * MILLISECOND).contains(&fires), "{stream}");
        }
        seen = resumed.len();
    }
    assert_eq!(*thread.host.resumed.borrow(), (11..60).collect::<Vec<u32>>());
    assert_eq!(thread.host.period(1), 0, "nothing calls a worker in which nothing waits");
}

/// Some hundreds would exhaust the host's stack.
#[test]
fn at_most_32_requests_resume_in_one_call() {
    let mut thread = Thread::with(LINE);
    (0..101).for_each(|stream| _ = thread.request(1, 10 + stream, "ann"));
    let now = thread.host.now.get().mono;
    thread.host.set(now + 10 * SECOND);
    let mut counts = Vec::new();
    for _ in 0..5 {
        let before = thread.host.resumed.borrow().len();
        thread.tick(1);
        counts.push(thread.host.resumed.borrow().len() - before);
    }
    assert_eq!(counts, [32, 32, 32, 4, 0]);
}

#[test]
fn departed_request_gives_its_turn_to_the_next() {
    let mut thread = Thread::with(LINE);
    (10..15).for_each(|stream| _ = thread.request(1, stream, "ann"));
    assert!(thread.streams[&12].is_open() && !thread.streams[&10].is_open());
    thread.leave(1, 12);
    thread.pass(2 * TURN + MILLISECOND);
    assert_eq!(*thread.host.resumed.borrow(), [11, 13]);
    thread.pass(10 * TURN);
    assert_eq!(*thread.host.resumed.borrow(), [11, 13, 14]);
    // A request with a response waits no longer, and its position is free for the next one.
    for stream in [11, 13, 14] {
        assert!(thread.responds(stream).is_some());
        assert!(!thread.streams[&stream].is_open());
    }
}

/// The host itself responds to a request after its own timeout.
#[test]
fn request_answered_by_the_host_gives_up_its_turn() {
    let mut thread = Thread::with(LINE);
    (10..15).for_each(|stream| _ = thread.request(1, stream, "ann"));
    assert!(thread.responds(12).is_none() && !thread.streams[&12].is_open());
    thread.pass(2 * TURN + MILLISECOND);
    assert_eq!(*thread.host.resumed.borrow(), [11, 13]);
    thread.leave(1, 12);
    assert!(!thread.request(1, 15, "ann"), "the next place is hers");
    thread.pass(2 * TURN + MILLISECOND);
    assert_eq!(*thread.host.resumed.borrow(), [11, 13, 14, 15]);
}

/// Positions of clients that left are reused.
#[test]
fn position_of_a_departed_request_is_free_at_once() {
    let mut thread = Thread::with(LINE);
    (10..15).for_each(|stream| _ = thread.request(1, stream, "ann"));
    thread.leave(1, 14);
    assert!(!thread.request(1, 15, "ann"));
    thread.pass(4 * TURN + MILLISECOND);
    assert_eq!(*thread.host.resumed.borrow(), [11, 12, 13, 15]);
}

#[test]
fn held_requests_wait_for_the_latest_root() {
    let mut thread = Thread::with(LINE);
    assert!(thread.configure(2, LINE));
    (10..20).for_each(|stream| _ = thread.request(1, stream, "ann"));
    assert_eq!(thread.host.next().map(|(_, root)| root), Some(2));
    thread.pass(2 * TURN + MILLISECOND);
    assert_eq!(*thread.host.resumed.borrow(), [11, 12]);
    thread.end(2);
    assert_eq!(thread.host.next().map(|(_, root)| root), Some(1));
    thread.pass(2 * TURN);
    assert_eq!(*thread.host.resumed.borrow(), [11, 12, 13, 14]);
    // A root that was added in between is the latest now.
    assert!(thread.configure(3, LINE));
    assert!(!thread.request(3, 30, "ann"));
    assert_eq!(thread.host.next().map(|(_, root)| root), Some(1), "its timer was set before");
    thread.pass(TURN);
    thread.end(1);
    thread.pass(SECOND);
    assert_eq!(*thread.host.resumed.borrow(), [11, 12, 13, 14, 15, 16, 17, 18, 19, 30]);
}

#[test]
fn missing_root_is_skipped() {
    let mut thread = Thread::with(LINE);
    assert!(thread.configure(2, LINE));
    // Without a call.
    thread.host.roots.borrow_mut().remove(&2);
    thread.roots.remove(&2);
    (10..13).for_each(|stream| _ = thread.request(1, stream, "ann"));
    thread.pass(SECOND);
    assert_eq!(*thread.host.resumed.borrow(), [11, 12]);
}

/// Reservations of other rules are returned in full, too. Those of admitted requests are settled at
/// their end.
#[test]
fn request_that_leaves_while_held_used_nothing() {
    const RULES: &str = "limits: [{Url: /, rules: [
        {actor: account, unit: second, rpu: 1, algo: LB, scope: local, max_delay: 20s, max_queue: 30},
        {actor: account, unit: day, rpu: 15, algo: W, scope: local, cost: {response: {header: x-used}, reserve: 5, max: 9}},
        {actor: account, in_flight: 3, scope: local}]}]";
    let mut thread = Thread::with(RULES);
    assert!(thread.request(1, 10, "ann") && !thread.request(1, 11, "ann"));
    thread.leave(1, 11);
    // Ann has 10 permits and two queue positions left.
    assert!(!thread.request(1, 12, "ann") && !thread.request(1, 13, "ann"));
    assert!(thread.host.refused().is_empty());
    thread.pass(3 * SECOND);
    assert_eq!(*thread.host.resumed.borrow(), [12, 13]);
    thread.request(1, 14, "ann");
    assert_eq!(thread.host.refused(), [14]);
}

#[test]
fn in_flight_slot_of_a_held_request_is_returned_at_its_end() {
    let rules =
        LINE.replace("rules: [", "rules: [{actor: account, in_flight: 2, scope: gateway}, ");
    let mut thread = Thread::with(&rules);
    for stream in [10, 20, 30] {
        assert!(thread.request(1, stream, "ann") && !thread.request(1, stream + 1, "ann"));
        assert!(!thread.request(1, stream + 2, "ann"));
        assert_eq!(thread.host.refused().last(), Some(&(stream + 2)));
        thread.pass(10 * TURN);
        assert_eq!(thread.host.resumed.borrow().last(), Some(&(stream + 1)));
        for stream in [stream, stream + 1] {
            _ = thread.responds(stream);
            thread.leave(1, stream);
        }
    }
}
