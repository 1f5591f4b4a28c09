//! Exactness is not bought with refusals, nor leases with writes.

use diana_core::policy::Quota;
use diana_core::time::{SECOND, Unit};
use fastrand::Rng;

use kit::seed;
use kit::store::gateway::{Gateway, PACE};
use kit::store::rule::Rule;

const WORKERS: usize = 4;

/// What became of a simulated demand.
#[derive(Default)]
struct Outcome {
    requests: u64,
    admitted: u64,
    /// What one counter without leases would have admitted.
    alone: u64,
    writes: u64,
}

/// A gateway beside one counter without leases.
struct Simulation {
    gateway: Gateway,
    counter: Vec<u64>,
    outcome: Outcome,
}

impl Simulation {
    fn new(short: &str, rpu: u64) -> Simulation {
        let rule = Rule::new(short, Quota::new(Unit::Second, rpu));
        let gateway = Gateway::new(rule, 100, WORKERS);
        let counter = vec![0; gateway.rule.algorithm.words()];
        Simulation { gateway, counter, outcome: Outcome::default() }
    }

    fn request(&mut self, worker: usize) {
        self.outcome.requests += 1;
        let admitted = self.gateway.request(worker, 1).unwrap().is_admitted();
        self.outcome.admitted += u64::from(admitted);
        let (old, now) = (self.counter.clone(), self.gateway.clock.get());
        let decision = self.gateway.rule.algorithm.step(&old, now, 1, &mut self.counter);
        self.outcome.alone += u64::from(decision.is_admitted());
    }

    /// Requests at random instants, `demand` a second; `skew` of a hundred go to one worker.
    fn run(&mut self, demand: u64, units: u64, skew: u8, rng: &mut Rng) {
        let end = self.gateway.clock.get().mono + units * SECOND;
        let mut tidied = [0; WORKERS];
        while self.gateway.clock.get().mono < end {
            let now = self.gateway.clock.get().later(rng.u64(0..=2 * SECOND / demand));
            self.gateway.clock.set(now);
            for (worker, last) in tidied.iter_mut().enumerate() {
                if now.mono >= *last + PACE {
                    // A timer is never early.
                    *last = now.mono + rng.u64(0..PACE / 10);
                    self.gateway.tidy(worker);
                }
            }
            let worker = if rng.u8(0..100) < skew { 0 } else { rng.usize(0..WORKERS) };
            self.request(worker);
        }
        let writes = |worker| self.gateway.traffic(worker).writes.get();
        self.outcome.writes = (0..WORKERS).map(writes).sum();
    }
}

#[test]
fn the_workers_together_use_up_what_one_counter_would_give() {
    let mut rng = Rng::with_seed(seed::next());
    for short in ["W", "SW", "TB"] {
        for rpu in [10, 100, 1000] {
            for (skew, load) in [(0, 110), (0, 200), (0, 1000), (90, 110), (90, 200), (90, 1000)] {
                let mut simulation = Simulation::new(short, rpu);
                simulation.run(rpu * load / 100, 30, skew, &mut rng);
                let Outcome { admitted, alone, .. } = simulation.outcome;
                let share = admitted as f64 / alone as f64;
                println!("{short} {rpu}, {load} % demand, skew {skew}: {share:.4} are used");
                assert!(share >= 0.97);
            }
        }
    }
}

#[test]
fn a_hot_caller_costs_few_writes() {
    let mut rng = Rng::with_seed(seed::next());
    for short in ["W", "SW", "TB"] {
        for demand in [50_000, 95_000, 200_000] {
            let mut simulation = Simulation::new(short, 100_000);
            // What there is after idleness is used up at once.
            (0..100_000).for_each(|request| simulation.request(request % WORKERS));
            simulation.outcome = Outcome::default();
            simulation.run(demand, 3, 0, &mut rng);
            let Outcome { requests, admitted, alone, writes } = simulation.outcome;
            let share = admitted as f64 / alone as f64;
            let writes = writes as f64 / requests as f64;
            println!("{short} at {demand}: {writes:.4} writes a request, {share:.4} are used");
            assert!(writes < 0.05 && share >= 0.97);
        }
    }
}

/// What others hold may come back, but not so soon that each request had to look for it.
#[test]
fn while_others_hold_what_is_left_a_flood_asks_once() {
    for short in ["W", "SW"] {
        let gateway = Gateway::new(Rule::new(short, Quota::new(Unit::Day, 1000)), 100, 2);
        (0..100).for_each(|_| _ = gateway.request(0, 1));
        while gateway.request(1, 1).unwrap().is_admitted() {}
        assert!(gateway.past(1).len() < 1000, "the other worker holds nothing");
        let before = gateway.asked.get();
        (0..100).for_each(|_| _ = gateway.request(1, 1));
        assert_eq!(gateway.asked.get(), before, "{short}");
    }
}
