//! Never one too many, and none is left behind, whatever gets lost and whoever dies.

use diana_core::time::SECOND;

use super::{AGAIN, Fleet, LIMIT, MILLISECOND};

#[test]
fn never_one_too_many_whatever_gets_lost_and_none_is_left_behind() {
    for lossy in [0, 20, 200] {
        let mut fleet = Fleet::new(3);
        fleet.run(50 * MILLISECOND);
        for _ in 0..10 {
            fleet.lossy = lossy;
            fleet.play(1_500);
            fleet.lossy = 0;
            fleet.run(SECOND);
            fleet.all_are_free();
        }
        let (admitted, refused) = (fleet.admitted, fleet.refused);
        assert!(admitted > 500 && refused > 1_000, "too tame: {admitted}, {refused}");
    }
}

/// Long requests keep their places, and those of a gateway that died are free again.
#[test]
fn places_are_held_for_as_long_as_their_gateway_lives() {
    let mut fleet = Fleet::new(2);
    fleet.run(50 * MILLISECOND);
    while fleet.open(0) < LIMIT {
        let at = fleet.rng.usize(..2);
        fleet.request(at, 0);
        fleet.run(3 * MILLISECOND);
    }
    for _ in 0..20 {
        fleet.run(SECOND);
        (0..2).for_each(|at| fleet.request(at, 0));
        fleet.run(3 * MILLISECOND);
        assert_eq!(fleet.open(0), LIMIT);
    }
    fleet.gateways.truncate(1);
    fleet.run(AGAIN);
    fleet.fill(0, 0);
    fleet.all_are_free();
}
