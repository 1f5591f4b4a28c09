//! Gateways that Redis has not heard of for so long that it has forgotten what they hold.

use diana_core::time::SECOND;

use super::{AGAIN, Fleet, Known, LIMIT, MILLISECOND, gateway};

/// Redis hears of all of them again; how soon each looks whether it is back depends on how often it failed.
fn come_back(fleet: &mut Fleet) {
    fleet.gateways.iter_mut().for_each(|it| it.cut = false);
    let all_are_back =
        |fleet: &Fleet| fleet.gateways.iter().all(|it| it.engine.redis().away() == 0);
    for _ in 0..1000 {
        if all_are_back(fleet) {
            return;
        }
        fleet.run(SECOND / 10);
    }
    panic!("Redis stays away");
}

/// What Redis forgot of a gateway that it did not hear of is not counted when it ends: it is nobody's place any more.
#[test]
fn what_redis_forgot_takes_no_place_of_anybody_else() {
    for time in [3 * SECOND, 10 * SECOND] {
        let mut fleet = Fleet::new(2);
        fleet.run(50 * MILLISECOND);
        fleet.fill(0, 0);
        fleet.gateways[0].cut = true;
        fleet.run(time);
        // They are another's by now.
        fleet.fill(1, 0);
        come_back(&mut fleet);
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

/// Nor does what it had to say when it was cut off, and says at last, bring back what was forgotten.
#[test]
fn what_is_said_late_takes_no_place_of_anybody_else() {
    let mut fleet = Fleet::new(2);
    fleet.run(50 * MILLISECOND);
    fleet.fill(0, 0);
    fleet.run(SECOND / 2);
    fleet.gateways[0].cut = true;
    fleet.end(0);
    fleet.run(3 * SECOND);
    fleet.fill(1, 0);
    while !fleet.gateways[1].open.is_empty() {
        fleet.end(1);
    }
    fleet.run(SECOND / 10);
    come_back(&mut fleet);
    fleet.fill(1, 0);
    fleet.all_are_free();
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
        come_back(&mut fleet);
        fleet.end_all();
        fleet.run(AGAIN);
        each(&mut fleet);
        let (random, now) = (fleet.rng.u64(..), fleet.now().mono);
        // It dies.
        fleet.gateways[1] = gateway(random, now);
        fleet.run(AGAIN);
        fleet.fill(0, 0);
        fleet.all_are_free();
    }
}

/// Nor does it become again who it was, however often it is forgotten: nobody has looked at some of its places since.
#[test]
fn what_was_forgotten_stays_forgotten() {
    let mut fleet = Fleet::new(2);
    fleet.run(50 * MILLISECOND);
    for caller in [1, 2, 0] {
        while fleet.open(caller) < LIMIT {
            fleet.request(0, caller);
            fleet.run(3 * MILLISECOND);
        }
        fleet.gateways[0].cut = true;
        fleet.run(AGAIN);
        come_back(&mut fleet);
        fleet.end_all();
        fleet.run(AGAIN);
    }
    fleet.request(0, 0);
    fleet.run(AGAIN);
    fleet.all_are_free();
}

/// Also where a request comes before it has seen to what it holds.
#[test]
fn a_gateway_that_stood_still_holds_nothing_of_what_it_held() {
    let mut fleet = Fleet::new(2);
    fleet.run(50 * MILLISECOND);
    for at in [0, 1] {
        while fleet.gateways[at].open.len() < LIMIT / 2 {
            fleet.request(at, 0);
            fleet.run(3 * MILLISECOND);
        }
    }
    let moves = |fleet: &mut Fleet| fleet.clock.0.set(fleet.now().later(MILLISECOND));
    for _ in 0..AGAIN / MILLISECOND {
        fleet.work(1);
        moves(&mut fleet);
    }
    fleet.gateways[0].open.iter_mut().for_each(|open| open.known = Known::Forgotten);
    while fleet.gateways[0].open.len() <= LIMIT / 2 {
        fleet.gateways[0].ticked = fleet.now().mono;
        fleet.request(0, 0);
        fleet.work(0);
        moves(&mut fleet);
    }
    let new = fleet.gateways[0].open.pop().unwrap();
    (0..LIMIT / 2).for_each(|_| fleet.end(0));
    fleet.gateways[0].open.push(new);
    fleet.run(SECOND / 2);
    fleet.fill(1, 0);
    fleet.all_are_free();
}
