//! Never one too many, and none is left behind, whatever gets lost, whoever dies, and however far away Redis is.

use diana_core::time::SECOND;

use super::{AGAIN, CALLERS, Fleet, LIMIT, MILLI};

#[test]
fn never_one_too_many_whatever_gets_lost_and_none_is_left_behind() {
    let mut fleet = Fleet::new(3);
    fleet.run(50 * MILLI);
    for round in 0..3 {
        fleet.lossy.set([0, 20, 200][round]);
        for _ in 0..1_500 {
            fleet.act(CALLERS);
        }
        fleet.lossy.set(0);
        fleet.run(SECOND);
        fleet.all_are_free();
    }
    assert!(fleet.admitted > 150 && fleet.refused > 150, "{} {}", fleet.admitted, fleet.refused);
}

#[test]
fn what_a_gateway_held_that_died_is_free_again() {
    let mut fleet = Fleet::new(2);
    fleet.run(50 * MILLI);
    while fleet.open(0) < LIMIT {
        let gateway = fleet.rng.usize(..2);
        fleet.request(gateway, 0);
        fleet.run(5 * MILLI);
    }
    // Long requests keep theirs.
    fleet.run(AGAIN + AGAIN);
    fleet.ask(0, 20);
    assert_eq!(fleet.open(0), LIMIT);
    let died = fleet.open.iter().filter(|open| open.gateway == 1).count();
    fleet.open.retain(|open| open.gateway == 0);
    fleet.gateways.truncate(1);
    fleet.run(AGAIN);
    fleet.ask(0, 3 * LIMIT);
    assert_eq!(fleet.open(0), LIMIT, "{died} were of the one that died");
}

/// How soon a worker says that it holds what it was given depends on how far away Redis is.
#[test]
fn never_one_too_many_however_far_away_redis_is() {
    let mut fleet = Fleet::far(2, 110 * MILLI);
    fleet.run(500 * MILLI);
    for _ in 0..3_000 {
        let gateway = fleet.rng.usize(..2);
        match fleet.rng.u8(..100) {
            0..30 => fleet.request(gateway, 0),
            30 => fleet.end(),
            _ => fleet.work(gateway),
        }
        fleet.server.advance(MILLI);
    }
    assert!(fleet.admitted > 10 && fleet.refused > 50, "{} {}", fleet.admitted, fleet.refused);
}

/// What was in flight then comes on top, and only until it has ended, if Redis had been told of it.
#[test]
fn an_emptied_redis_knows_soon_what_is_in_flight() {
    let mut fleet = Fleet::new(2);
    fleet.run(50 * MILLI);
    for round in 0..5 {
        if round > 0 {
            fleet.tells_all();
            fleet.open.iter_mut().for_each(|open| open.forgotten = true);
            assert_eq!(fleet.server.command(&["FLUSHALL"]), "OK");
        }
        for _ in 0..600 {
            fleet.act(1);
        }
    }
    fleet.run(50 * MILLI);
    fleet.all_are_free();
    assert!(fleet.admitted > 100 && fleet.refused > 100, "{} {}", fleet.admitted, fleet.refused);
}

/// What it was told only then may take the place of somebody else who has just come, whom it is told of later.
#[test]
fn a_redis_emptied_at_any_instant_lets_no_more_in_than_one_further_limit() {
    let mut fleet = Fleet::new(2);
    fleet.run(50 * MILLI);
    for _ in 0..30 {
        (0..100).for_each(|_| fleet.act(1));
        assert_eq!(fleet.server.command(&["FLUSHALL"]), "OK");
        fleet.further = LIMIT;
        (0..100).for_each(|_| fleet.act(1));
        // Nobody is left whom it was not told of.
        while fleet.is_busy() {
            fleet.end();
            fleet.run(MILLI);
            fleet.tells_all();
        }
        assert_eq!(fleet.server.command(&["FLUSHALL"]), "OK");
        fleet.further = 0;
    }
    assert!(fleet.admitted > 100 && fleet.refused > 100, "{} {}", fleet.admitted, fleet.refused);
}
