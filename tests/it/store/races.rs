//! Several workers, each interrupted by the others just before it writes.

use std::rc::Rc;

use diana_algorithm::REGISTRY;
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

#[test]
fn slow_or_dead_workers_admit_no_excess() {
    rounds(300, |rule, rng| {
        // With few keys, callers share the lines in which a worker remembers leases.
        let keys = if rng.bool() { 2 } else { 1000 };
        let gateway = Rc::new(Gateway::new(rule, keys, rng.usize(2..5)));
        let (callers, often) = (rng.u64(1..4), rng.u8(1..9));
        interrupt(&gateway, rng.fork(), move |gateway, rng| {
            if rng.u8(0..often) > 0 {
                return;
            }
            let worker = rng.usize(0..gateway.workers());
            match rng.u8(0..8) {
                0 => gateway.pass(rng.u64(0..=2 * gateway.rule.pace())),
                1 => gateway.pass(rng.u64(0..=10 * PACE)),
                2 => gateway.crash(worker),
                3 => _ = gateway.maintain(worker),
                _ => _ = gateway.request(worker, rng.u64(0..callers)),
            }
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
