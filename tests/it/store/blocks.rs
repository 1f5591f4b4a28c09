//! Blocks of permits that a worker holds: how large they are, and when they come back.

use diana_core::policy::Quota;
use diana_core::time::Unit;
use kit::store::gateway::{START, key};

use super::office::{MS, Office, day};

/// Where permits come back all at once, none of them gather.
#[test]
fn nobody_waits_for_permits_of_a_window_that_were_used() {
    for short in ["W", "SW"] {
        let mut office = Office::new(short, Quota::new(Unit::Second, 100), false);
        office.take_block(0, 0);
        office.workers[0].close(START);
        assert!(office.flood(1, 900 * MS) > 90);
        assert_eq!(office.check(1, 900 * MS).loan(), 0, "{short}");
    }
}

/// Of what gathered a caller that was refused gets as much as it needs while more gathers, in one block: a share of
/// it would be used up by the next request.
#[test]
fn whoever_was_refused_gets_what_gathered_at_once() {
    let mut office = Office::new("TB", Quota::new(Unit::Second, 1000), false);
    assert!(office.flood(0, 0) >= 1000);
    let before = office.data.writes.get();
    assert!((0..10).all(|_| office.take(0, 10 * MS)));
    assert_eq!(office.data.writes.get() - before, 1);
}

/// It is kept a while for whoever comes again, and others do not miss it as long as there is more.
#[test]
fn a_block_goes_back_when_nothing_was_spent_of_it_for_fifty_milliseconds() {
    let mut office = Office::new("W", day(1000), false);
    let left = |office: &mut Office, at| {
        let reservation = office.check(1, at);
        office.workers[1].remaining(&reservation)
    };
    office.take_block(0, 0);
    for (at, back) in [(50 * MS - 1, false), (50 * MS, true)] {
        office.workers[0].tidy(START.later(at));
        assert_eq!(left(&mut office, at) == 999, back, "at {at}");
    }
}

/// Shared data was lost, and others have taken the caller's place: what it holds is not what was taken out of the
/// bucket that it shares now.
#[test]
fn a_lease_does_not_count_as_given_back_to_a_bucket() {
    let mut office = Office::of(16, "W", day(1000), false);
    let ann = office.ann;
    office.take_block(0, 0);
    office.data.data.clear();
    for other in 2..34 {
        office.ann = key(other);
        assert!(office.take(1, 0));
    }
    office.ann = ann;
    assert!((0..10).all(|_| office.take(1, 0)));
    let reservation = office.check(0, 0);
    assert_eq!(office.workers[0].remaining(&reservation), 990);
}
