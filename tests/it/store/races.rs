//! Several workers, each interrupted by the others just before it writes.

use std::rc::Rc;

use diana_algorithm::REGISTRY;
use diana_policy::Quota;
use diana_policy::time::Unit;
use fastrand::Rng;

use kit::seed;
use kit::store::gateway::{Gateway, PACE, interrupt};
use kit::store::rule::Rule;

/// Runs `rounds` of a test for each algorithm, each replayable by its own seed.
pub fn rounds(rounds: u64, mut round: impl FnMut(Rule, &mut Rng)) {
    let seed = seed::next();
    for number in 0..rounds {
        let seed = seed.wrapping_add(number);
        for entry in REGISTRY {
            let mut rng = Rng::with_seed(seed);
            let rule = Rule::random(entry, &mut rng);
            println!("seed {seed}: {} {:?}", rule.short, rule.quota);
            round(rule, &mut rng);
        }
    }
}

/// A gap before the next request.
pub fn gap(rule: &Rule, rng: &mut Rng) -> u64 {
    match rng.u8(0..16) {
        0..=8 => 0,
        9..=11 => rng.u64(0..=2 * rule.pace()),
        12 => rng.u64(0..=PACE),
        13 => rng.u64(0..=10 * PACE),
        14 => rng.u64(0..=rule.quota.period() / 4),
        _ => rng.u64(0..=3 * rule.quota.period()),
    }
}

/// Before each write, another worker may run `act` with a number.
pub fn interrupted(
    gateway: &Rc<Gateway>,
    rng: &mut Rng,
    act: impl Fn(&Gateway, usize, u8, &mut Rng) + 'static,
) {
    let often = rng.u8(1..9);
    interrupt(gateway, rng.fork(), move |gateway, rng| {
        if rng.u8(0..often) == 0 {
            act(gateway, rng.usize(0..gateway.workers()), rng.u8(0..8), rng);
        }
    });
}

#[test]
fn races_admit_no_excess_and_lose_no_permit() {
    rounds(300, |rule, rng| {
        // With few keys, callers share the lines in which a worker remembers leases.
        let keys = if rng.bool() { 2 } else { 1000 };
        let gateway = Rc::new(Gateway::new(rule, keys, rng.usize(1..5)));
        let callers = rng.u64(1..4);
        interrupted(&gateway, rng, move |gateway, worker, act, rng| match act {
            0 => _ = gateway.maintain(worker),
            _ => _ = gateway.request(worker, rng.u64(0..callers)),
        });
        for _ in 0..300 {
            gateway.wait(gap(&gateway.rule, rng));
            gateway.request(rng.usize(0..gateway.workers()), rng.u64(0..callers));
        }
        gateway.verify();
        *gateway.data.before_swap.borrow_mut() = None;
        gateway.close();
        for caller in gateway.callers() {
            let past = gateway.past(caller);
            let expected = gateway.rule.left(&past, gateway.clock.get());
            let left = gateway.left(caller);
            assert!(left <= expected, "{left} left instead of {expected}");
            if gateway.rule.algorithm.properties().most_out == u64::MAX {
                assert_eq!(left, expected, "permits were lost");
            }
        }
    });
}

#[test]
fn slow_or_dead_workers_admit_no_excess() {
    rounds(300, |rule, rng| {
        let gateway = Rc::new(Gateway::new(rule, 1000, rng.usize(2..5)));
        let callers = rng.u64(1..4);
        interrupted(&gateway, rng, move |gateway, worker, act, rng| match act {
            0 => gateway.pass(rng.u64(0..=2 * gateway.rule.pace())),
            1 => gateway.pass(rng.u64(0..=10 * PACE)),
            2 => gateway.crash(worker),
            3 => _ = gateway.maintain(worker),
            _ => _ = gateway.request(worker, rng.u64(0..callers)),
        });
        for _ in 0..300 {
            let worker = rng.usize(0..gateway.workers());
            gateway.pass(gap(&gateway.rule, rng));
            match rng.u8(0..16) {
                0 => gateway.crash(worker),
                1..=2 => _ = gateway.maintain(worker),
                _ => _ = gateway.request(worker, rng.u64(0..callers)),
            }
        }
        gateway.verify();
    });
}

#[test]
fn first_write_of_a_slot_loses_no_charge() {
    for interrupted in 0..4 {
        let gateway = Rc::new(Gateway::new(Rule::new("W", Quota::new(Unit::Day, 9)), 1000, 2));
        let mut writes = 0;
        interrupt(&gateway, Rng::with_seed(0), move |gateway, _| {
            if writes == interrupted {
                gateway.request(1, 1);
            }
            writes += 1;
        });
        gateway.request(0, 1);
        assert_eq!(gateway.left(1), 9 - gateway.past(1).len() as u64);
    }
}
