//! Windows on a wall clock that steps.

use diana_algorithm::{Algorithm, REGISTRY};
use diana_policy::time::{Now, SECOND, Unit};
use diana_policy::{Quota, Zone};

/// A caller of one window rule.
struct Caller {
    algorithm: std::sync::Arc<dyn Algorithm>,
    state: Vec<u64>,
}

impl Caller {
    fn new(quota: Quota) -> Caller {
        let entry = REGISTRY.iter().find(|entry| entry.short == "W").unwrap();
        let algorithm = (entry.build)(&quota).unwrap();
        Caller { state: vec![0; algorithm.properties().words], algorithm }
    }

    fn admits(&mut self, now: Now) -> bool {
        let mut new = self.state.clone();
        let admitted = self.algorithm.step(&self.state, now, 0, 1, &mut new).is_admitted();
        if admitted {
            self.state = new;
        }
        admitted
    }
}

const HOUR: u64 = 3600 * SECOND;
const WALL: u64 = 500_000 * HOUR;

#[test]
fn small_step_back_stays_in_the_current_window() {
    let mut caller = Caller::new(Quota::new(Unit::Day, 1));
    let midnight = WALL / (24 * HOUR) * 24 * HOUR;
    assert!(caller.admits(Now { mono: HOUR, wall: midnight - 1 }));
    assert!(caller.admits(Now { mono: HOUR + 1, wall: midnight }));
    // Back before midnight: the new day stays current, and the previous one does not return.
    assert!(!caller.admits(Now { mono: HOUR + 2, wall: midnight - 2 * SECOND }));
    assert!(!caller.admits(Now { mono: HOUR + 3, wall: midnight + 1 }));
    assert!(caller.admits(Now { mono: 25 * HOUR, wall: midnight + 24 * HOUR }));
}

#[test]
fn large_step_back_ends_a_window_after_one_unit() {
    let mut caller = Caller::new(Quota::new(Unit::Second, 1));
    assert!(caller.admits(Now { mono: HOUR, wall: WALL }));
    let back = WALL - HOUR;
    assert!(!caller.admits(Now { mono: HOUR + SECOND - 1, wall: back + SECOND - 1 }));
    assert!(caller.admits(Now { mono: HOUR + SECOND, wall: back + SECOND }));
    // From there on windows are aligned again.
    assert!(!caller.admits(Now { mono: HOUR + 2 * SECOND - 1, wall: back + 2 * SECOND - 1 }));
    assert!(caller.admits(Now { mono: HOUR + 2 * SECOND, wall: back + 2 * SECOND }));
}

/// Sunday, 25 October 2026, in Berlin.
#[test]
fn large_step_back_keeps_the_length_of_a_day() {
    let zone = kit::zones::zone("CET-1CEST,M3.5.0,M10.5.0/3");
    let begins = 1_792_879_200 * SECOND;
    for (mono, wall) in [(0, 25 * HOUR), (3 * HOUR, 22 * HOUR)] {
        let mut caller = Caller::new(Quota { zone, ..Quota::new(Unit::Day, 1) });
        let at = |after, back| Now { mono: HOUR + after, wall: begins + after - back };
        assert!(caller.admits(at(0, 0)));
        assert!(!caller.admits(at(24 * HOUR, mono)));
        assert!(!caller.admits(at(25 * HOUR - 1, mono)));
        assert_eq!(at(25 * HOUR, mono).wall, begins + wall);
        assert!(caller.admits(at(25 * HOUR, mono)));
    }
}

#[test]
fn day_begins_at_midnight_of_the_time_zone() {
    let mut caller = Caller::new(Quota { zone: Zone::ahead(8 * 3600), ..Quota::new(Unit::Day, 1) });
    let midnight = WALL / (24 * HOUR) * 24 * HOUR + 16 * HOUR;
    assert!(caller.admits(Now { mono: HOUR, wall: midnight - 1 }));
    assert!(!caller.admits(Now { mono: HOUR, wall: midnight - 1 }));
    assert!(caller.admits(Now { mono: HOUR, wall: midnight }));
    // With minutes in the offset, an hour does not begin at the full hour.
    let mut caller = Caller::new(Quota { zone: Zone::ahead(19_800), ..Quota::new(Unit::Hour, 1) });
    assert!(caller.admits(Now { mono: HOUR, wall: WALL + HOUR / 2 - 1 }));
    assert!(caller.admits(Now { mono: HOUR, wall: WALL + HOUR / 2 }));
    assert!(!caller.admits(Now { mono: HOUR, wall: WALL + HOUR }));
}
