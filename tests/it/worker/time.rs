//! The clocks of a worker.

use super::Thread;
use diana_policy::time::{Now, SECOND};

const MINUTE: &str =
    "limits: [{Url: /, rules: [{actor: account, unit: minute, rpu: 2, algo: W, scope: local}]}]";

#[test]
fn wall_clock_is_read_once_a_second() {
    let mut thread = Thread::with(MINUTE);
    thread.request(1, 10, "ann");
    let looks = thread.host.looks.get();
    let start = thread.host.now.get();
    for (later, more) in
        [(0, 0), (SECOND - 1, 0), (SECOND, 1), (2 * SECOND - 1, 1), (3 * SECOND, 2)]
    {
        thread.host.now.set(start.later(later));
        thread.request(1, 10, "ann");
        assert_eq!(thread.host.looks.get() - looks, more, "{later} later");
    }
}

#[test]
fn windows_follow_the_wall_clock() {
    let mut thread = Thread::with(MINUTE);
    let request = |thread: &mut Thread| thread.request(1, 10, "ann");
    assert!(request(&mut thread) && request(&mut thread) && !request(&mut thread));
    // The clock is set forward within the interval of a reading.
    let now = thread.host.now.get();
    thread.host.now.set(Now { mono: now.mono + SECOND, wall: now.wall + 60 * SECOND });
    assert!(request(&mut thread));
    assert!(thread.host.lines().iter().all(|line| !line.contains("stepped back")));
}

#[test]
fn step_back_is_logged_and_slewing_is_not() {
    for (back, lines_logged) in [(SECOND, 0), (SECOND + 1, 1), (90 * SECOND, 1)] {
        let mut thread = Thread::with(MINUTE);
        thread.request(1, 10, "ann");
        let now = thread.host.now.get();
        thread.host.now.set(Now { mono: now.mono + SECOND, wall: now.wall + SECOND - back });
        thread.request(1, 10, "ann");
        let lines = thread.host.lines();
        let line = format!("the wall clock stepped back by {} s;", back / SECOND);
        assert_eq!(
            lines.iter().filter(|it| it.starts_with(&line)).count(),
            lines_logged,
            "{lines:?}"
        );
        assert_eq!(thread.host.count_of("diana.ns.clock_stepped_back"), lines_logged as i64);
    }
}

/// On a machine without a battery-backed clock it is 1970 after a start.
#[test]
fn late_wall_clock_at_the_start_is_no_step_back() {
    let mut thread = Thread::with(MINUTE);
    let now = thread.host.now.get();
    thread.host.now.set(Now { wall: now.mono / 2, ..now });
    thread.request(1, 10, "ann");
    assert_eq!(thread.host.count_of("diana.ns.clock_stepped_back"), 0);
}

/// An interruption between the readings of the two clocks is detected by their duration.
#[test]
fn clocks_read_apart_are_read_again() {
    for (slow, looks) in [(0, 1), (499, 1), (500, 2)] {
        let mut thread = Thread::with(MINUTE);
        let before = thread.host.looks.get();
        // The monotonic clock is read for the next upkeep, and before and after the wall clock.
        *thread.host.slow.borrow_mut() = vec![slow, 0, 0];
        thread.request(1, 10, "ann");
        assert_eq!(thread.host.looks.get() - before, looks, "{slow}");
    }
}
