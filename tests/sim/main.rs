//! The simulator: fleets of the shipped module, and of native workers, on one simulated clock, with
//! a real Redis. Each seed chooses a world (`plan`), the world happens (`world`), and all promises are held against it
//! (`oracle`).
//!
//! Worlds of the seeds from `WIDE` on have more features, and the module and native workers must have the same history in
//! them: the same decisions at the same times, with the same responses. `modules` compares the module with workers that are
//! threads of one process. Those from `BLIPS` on have a Redis that is away
//! again and again; those from `LARGE` on have numbers of fifteen digits.
//!
//! A world that broke a promise is played again by its seed, and then prints what became of each request:
//! `DIANA_SEED=78 cargo test --test sim native -- --nocapture`. `DIANA_SEED=fresh` plays new worlds.

mod busy;
mod lossy;
mod modules;
mod native;
mod network;
mod node;
mod oracle;
mod plan;
mod record;
mod rule;
mod shipped;
mod split;
mod world;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;
use kit::server::Server;

use native::Native;
use oracle::CheckedCounts;
use plan::{BLIPS, LARGE, Plan, WIDE};
use shipped::Shipped;
use world::{Played, Start, World};

/// Seeds that find a bug when it is put back, with its description. They hold for the worlds that `Plan::draw` makes today.
const FINDS: &[(u64, &str)] = &[
    (0, "held requests without a timer"),
    (17, "`reserve: 0` charged a permit until the request was known to be admitted"),
    (26, "a lost compare-and-swap of shared data taken for a write"),
    (30, "a place in flight counted twice, as granted and as held"),
    (418, "charges forgotten when an instance ended while Redis was away"),
    (454, "a batch of settlements counted twice by Redis"),
    (490, "a call of a root that ended taken for a Redis that does not answer"),
    (3154, "a worker that had been presumed dead freed the slots of later requests"),
    (26615, "a batch without any slots in flight taken for a sign of life"),
    (70505, "permits leased of a rule that settles"),
    (LARGE + 8, "debts beyond 2^53 in a window taken for a corrupt value"),
    (LARGE + 21, "the same in a slice"),
];

const NATIVE: Start = |_, seed, now, ahead| Box::new(Native::new(seed, now, ahead));
const SHIPPED: Start = |plan, seed, now, ahead| Box::new(Shipped::new(plan, seed, now, ahead));

#[test]
fn native() {
    play(
        "native",
        NATIVE,
        (0..300).chain(WIDE..WIDE + 100).chain(BLIPS..BLIPS + 60).chain(LARGE..LARGE + 60),
    );
}

#[test]
fn shipped() {
    play(
        "shipped",
        SHIPPED,
        (0..40).chain(WIDE..WIDE + 10).chain(BLIPS..BLIPS + 5).chain(LARGE..LARGE + 5),
    );
}

/// Plays the worlds of these seeds, and those of all finds.
fn play(test: &str, start: Start, seeds: impl Iterator<Item = u64>) {
    let (seeds, is_one): (Vec<u64>, bool) = match std::env::var("DIANA_SEED").as_deref() {
        Ok("fresh") => {
            let fresh = |seed| {
                Rng::new().u64(match seed {
                    LARGE.. => LARGE..1 << 44,
                    BLIPS.. => BLIPS..1 << 42,
                    WIDE.. => WIDE..1 << 40,
                    _ => 0..WIDE,
                })
            };
            (seeds.map(fresh).collect(), false)
        }
        Ok(seed) => (vec![seed.parse().expect("DIANA_SEED is a number or `fresh`")], true),
        Err(_) => {
            let finds = FINDS.iter().map(|(seed, _)| *seed);
            let seeds: BTreeSet<u64> = seeds.chain(finds).collect();
            (seeds.into_iter().collect(), false)
        }
    };
    let server = Server::start();
    let (mut sum, mut broken) = (CheckedCounts::default(), Vec::new());
    for seed in &seeds {
        let plan = Plan::draw(*seed);
        println!("seed {seed}: {plan:?}");
        let play = || {
            let mut world = World::new(&plan, start, &server);
            world.prints_all = is_one;
            let shipped = world.run();
            if test == "shipped" && plan.wide.is_some() {
                compare(&shipped, &World::new(&plan, NATIVE, &server).run());
            }
            shipped.0
        };
        match catch_unwind(AssertUnwindSafe(play)) {
            Ok(checked) => sum.add(checked),
            Err(_) => broken.push(seed),
        }
    }
    println!("{} worlds: {sum:?}", seeds.len());
    assert!(
        broken.is_empty(),
        "a promise was broken in the worlds {broken:?}; to play one again: \
         DIANA_SEED=<number> cargo test --test sim {test} -- --nocapture"
    );
    // Of few worlds, all refusals may be excused; of the others, those of busy callers.
    if !is_one {
        assert!(sum.admissions > 100 * seeds.len(), "too tame: {sum:?}");
        assert!(sum.accountable * 6 > sum.refusals, "too tame: {sum:?}");
    }
}

/// # Panics
/// If the module and native workers have different histories in the same world.
fn compare(shipped: &Played, native: &Played) {
    let differ = shipped.1.iter().zip(&native.1).find(|(one, other)| one != other);
    assert!(differ.is_none(), "the module and the native worker differ: {differ:#?}");
    assert_eq!(shipped.1.len(), native.1.len(), "the numbers of requests differ");
    assert_eq!(shipped.2, native.2, "the metrics differ");
}
