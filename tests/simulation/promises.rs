//! What a fleet promises, held against small fleets at random.

use diana_core::time::SECOND;
use fastrand::Rng;

use kit::seed;
use kit::simulation;
use kit::simulation::plan::{Line, Plan, Proxied};
use kit::simulation::seen::Seen;

const ALGORITHMS: [&str; 4] = ["W", "SW", "TB", "LB"];

/// A lease is spent for a tenth of a second, and was not used as far as it comes back in half a second.
const LONGEST_STILL: u64 = 350_000;

fn run(plan: &Plan) -> Seen {
    let seen = simulation::run(plan);
    println!("{plan:?}\n{seen:?}");
    seen
}

/// A fleet whose limit is exceeded twice, and a Redis that always answers in time.
fn random(algo: &'static str, rng: &mut Rng) -> Plan {
    let rpu = 100 << rng.u8(0..4);
    Plan {
        seed: rng.u64(..),
        gateways: rng.usize(1..=5),
        workers: rng.usize(1..=4),
        algo,
        rpu,
        demand: 2 * rpu,
        skew: if rng.bool() { 0 } else { 90 },
        seconds: 20,
        line: Line { latency: 200 << rng.u8(0..5), timeout: 100_000, ..Line::default() },
        ..Plan::default()
    }
}

#[test]
fn never_over_the_limit_while_redis_answers() {
    let mut rng = Rng::with_seed(seed::next());
    let mut full = 0;
    for number in 0..48 {
        let plan = random(ALGORITHMS[number % 4], &mut rng);
        let algo = plan.algo;
        let callers = if rng.bool() { 1 } else { 30 };
        let demand = plan.rpu * rng.u64(1..=30) / 4;
        // All at once, where it hurts most: at the edges of windows and slices.
        let edge = rng.u64(1..=10) * SECOND / 10;
        let pulse = if rng.bool() { 0..SECOND } else { edge - rng.u64(1..100_000)..edge };
        // Some behind a proxy, where each caller's permits lie with one of several Redis.
        let nodes = rng.usize(1..=4);
        let proxied = Proxied { parts: nodes * rng.usize(1..=4), nodes };
        // What a worker holds that stands still for a while was not used. A line in front of it does not move then.
        let begins = rng.u64(0..SECOND - LONGEST_STILL);
        let stands = algo != "LB" && rng.bool();
        let still = begins..begins + if stands { rng.u64(1..LONGEST_STILL) } else { 0 };
        // Nor does it give up what it asked before.
        let timeout = if stands { SECOND / 2 } else { plan.line.timeout };
        let line = Line { proxy: rng.bool().then_some(proxied), timeout, ..plan.line };
        let plan = Plan { callers, zipf: 1.1, demand, pulse, still, seconds: 8, line, ..plan };
        let seen = run(&plan);
        assert_eq!((seen.failed, seen.alone), (0.0, 0.0));
        assert_eq!(seen.extremes.fullest.over(), 0);
        // A leaky bucket holds what fits; its line is another matter.
        assert!(algo == "LB" || seen.in_error == 0, "refused although it fitted");
        full += usize::from(seen.extremes.fullest.used * 100 >= seen.extremes.fullest.allowed * 99);
    }
    assert!(full >= 15, "too tame: {full}");
}

/// Answers bring more requests at once than go on in one call, and regular work is done in between: what
/// those bring that go on later is handed in all the same.
#[test]
fn a_burst_strands_no_permits() {
    let (seed, line) =
        (15839812957279081139, Line { latency: 800, timeout: 100_000, ..Line::default() });
    let fleet = Plan { seed, gateways: 3, workers: 2, rpu: 800, line, ..Plan::default() };
    let crowd = Plan { callers: 30, zipf: 1.1, demand: 4000, ..fleet };
    let seen = run(&Plan { pulse: 94_886..100_000, seconds: 8, ..crowd });
    assert_eq!((seen.extremes.fullest.over(), seen.in_error), (0, 0));
}

#[test]
fn at_twice_the_limit_most_of_it_is_used() {
    let mut rng = Rng::with_seed(seed::next());
    for number in 0..18 {
        let plan = random(ALGORITHMS[number % 3], &mut rng);
        // With fewer permits for each worker a sliding window uses some per cent less.
        let workers = (plan.gateways * plan.workers) as u64;
        let rpu = (100 << rng.u8(0..6)).max(if plan.algo == "SW" { 40 * workers } else { 0 });
        let seen = run(&Plan { rpu, demand: 2 * rpu, ..plan });
        assert!(seen.used >= 0.95, "{}", seen.used);
        assert_eq!(seen.extremes.fullest.over(), 0);
        // Who waits for what is outstanding may be let through in the next slice, where the counter refused it.
        assert!(seen.used <= 1.01, "a leased limit gives more than one that is not: {}", seen.used);
    }
}

#[test]
fn gateways_that_are_cut_off_admit_their_parts_at_most() {
    let mut rng = Rng::with_seed(seed::next());
    let (mut apart, mut beyond) = (0, 0);
    for number in 0..30 {
        let plan = random(ALGORITHMS[number % 3], &mut rng);
        let begins = rng.u64(2 * SECOND..6 * SECOND);
        let line = Line {
            timeout: 20_000,
            lost: if rng.bool() { 0 } else { rng.u64(0..50) },
            away: begins..begins + rng.u64(0..8 * SECOND),
            cut_off: rng.usize(0..=plan.gateways),
            ..plan.line
        };
        let (ends, lost) = (line.away.end, line.lost);
        let seen = run(&Plan { line, ..plan });
        assert_eq!(seen.extremes.fullest.over(), 0);
        apart += usize::from(seen.alone > 0.1);
        beyond += usize::from(seen.extremes.most.used > plan.rpu);
        if lost == 0 {
            let together = seen.last_alone.is_none_or(|last| last < ends + 2 * SECOND);
            assert!(together, "Redis was back at {ends}");
        }
    }
    assert!(apart >= 6 && beyond >= 3, "too tame: {apart}, {beyond}");
}

#[test]
fn the_same_seed_plays_the_same_again() {
    let mut rng = Rng::with_seed(seed::next());
    for algo in ALGORITHMS {
        let plan = Plan { seconds: 3, callers: 10, ..random(algo, &mut rng) };
        let plan = Plan { line: Line { lost: 20, ..plan.line }, ..plan };
        assert_eq!(format!("{:?}", run(&plan)), format!("{:?}", run(&plan)));
    }
}
