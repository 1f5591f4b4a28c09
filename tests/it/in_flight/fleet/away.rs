//! Gateways that Redis has not heard of for so long that it has forgotten what they hold.

use diana_core::time::SECOND;

use super::{AGAIN, Fleet, LIMIT, MILLISECOND, gateway};

/// What Redis forgot of a gateway that it did not hear of is not counted when it ends: it is nobody's place any more.
#[test]
fn what_redis_forgot_takes_no_place_of_anybody_else() {
    for time in [3 * SECOND, 10 * SECOND] {
        let mut fleet = Fleet::new(2);
        fleet.run(50 * MILLISECOND);
        for _ in 0..3 * LIMIT {
            fleet.request(0, 0);
            fleet.run(3 * MILLISECOND);
        }
        assert_eq!(fleet.open(0), LIMIT);
        fleet.gateways[0].cut = true;
        fleet.run(time);
        for _ in 0..3 * LIMIT {
            fleet.request(1, 0);
            fleet.run(3 * MILLISECOND);
        }
        assert_eq!(fleet.open(0), LIMIT, "they are another's by now");
        fleet.gateways[0].cut = false;
        fleet.run(SECOND);
        for _ in 0..LIMIT {
            fleet.end(0);
            fleet.run(SECOND);
            (0..2).for_each(|at| fleet.request(at, 0));
            fleet.run(3 * MILLISECOND);
            assert_eq!(fleet.open(0), LIMIT);
        }
        fleet.all_are_free();
    }
}

/// Whoever was forgotten is another one from then on, and nobody else.
#[test]
fn gateways_that_were_forgotten_do_not_live_for_each_other() {
    let mut fleet = Fleet::new(2);
    fleet.run(50 * MILLISECOND);
    for _ in 0..2 {
        let each = |fleet: &mut Fleet| {
            for at in [0, 1].repeat(8) {
                if fleet.gateways[at].open.len() < LIMIT / 2 {
                    fleet.request(at, 0);
                    fleet.run(3 * MILLISECOND);
                }
            }
            assert_eq!(fleet.open(0), LIMIT);
        };
        each(&mut fleet);
        fleet.gateways.iter_mut().for_each(|it| it.cut = true);
        fleet.run(AGAIN);
        fleet.gateways.iter_mut().for_each(|it| it.cut = false);
        fleet.end_all();
        fleet.run(AGAIN);
        each(&mut fleet);
        let (random, now) = (fleet.rng.u64(..), fleet.now().mono);
        // It dies.
        fleet.gateways[1] = gateway(random, now);
        fleet.run(AGAIN);
        for _ in 0..3 * LIMIT {
            fleet.request(0, 0);
            fleet.run(3 * MILLISECOND);
        }
        assert_eq!(fleet.open(0), LIMIT);
        fleet.all_are_free();
    }
}
