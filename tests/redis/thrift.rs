//! Leases are not bought with refusals: gateways that lease on their own use up together what one
//! counter without leases would give, also where most of the demand hits one of them.

use diana_core::algorithm::Algorithm;
use diana_core::policy::Quota;
use diana_core::time::{SECOND, Unit};
use fastrand::Rng;

use kit::model::Model;
use kit::rules::{Rule, at};
use kit::seed;
use worker::Worker;

mod worker;

const GATEWAYS: usize = 3;
const WORKERS: usize = 2 * GATEWAYS;
const START: u64 = 1_700_000_040 * SECOND;

/// Gateways beside one counter without leases.
struct Simulation {
    rules: [Rule; 1],
    redis: Model,
    workers: [Worker; WORKERS],
    counter: Vec<u64>,
    requests: u64,
    admitted: u64,
    alone: u64,
}

impl Simulation {
    fn new(short: &str, unit: Unit, rpu: u64) -> Simulation {
        let rule = Rule::new(short, Quota::new(unit, rpu));
        Simulation {
            counter: vec![0; rule.case.algorithm.words()],
            rules: [rule],
            redis: Model::default(),
            workers: Default::default(),
            requests: 0,
            admitted: 0,
            alone: 0,
        }
    }

    /// Requests at random instants, twice as many as are allowed; `skew` of a hundred go to the first
    /// gateway.
    fn run(&mut self, units: u64, skew: u8, rng: &mut Rng) {
        let Quota { rpu, .. } = self.rules[0].case.quota;
        let period = self.rules[0].case.quota.period();
        let mut now = START;
        let mut tick = START;
        while now < START + units * period {
            now += rng.u64(0..=period / rpu);
            while tick <= now {
                self.step(tick);
                tick += SECOND / 1000;
            }
            let gateway = if rng.u8(0..100) < skew { 0 } else { rng.usize(0..GATEWAYS) };
            let worker = 2 * gateway + rng.usize(0..2);
            self.requests += 1;
            self.admitted += self.workers[worker].request(now);
            let (old, at) = (self.counter.clone(), at(now));
            let decision = self.algorithm().step(&old, at, 1, &mut self.counter);
            self.alone += u64::from(decision.is_admitted());
        }
    }

    /// What the workers do in one millisecond: a call takes as long.
    fn step(&mut self, now: u64) {
        for worker in &mut self.workers {
            self.admitted += worker.step(now, &mut self.redis, &self.rules);
        }
    }

    fn algorithm(&self) -> std::rc::Rc<dyn Algorithm> {
        self.rules[0].case.algorithm.clone()
    }
}

#[test]
fn gateways_use_up_together_what_one_counter_would_give() {
    let mut rng = Rng::with_seed(seed::next());
    for short in ["W", "SW", "TB"] {
        for (unit, rpu) in [
            (Unit::Second, 10),
            (Unit::Second, 100),
            (Unit::Second, 1000),
            (Unit::Second, 10_000),
            (Unit::Minute, 10),
            (Unit::Minute, 1000),
        ] {
            for skew in [0, 90] {
                let mut simulation = Simulation::new(short, unit, rpu);
                simulation.run(20, skew, &mut rng);
                let Simulation { admitted, alone, requests, workers, .. } = simulation;
                let share = admitted as f64 / alone as f64;
                let waited = workers.iter().map(|worker| worker.waited).sum::<u64>() as f64;
                println!(
                    "{short} {rpu} a {}, skew {skew}: {share:.4} are used, {:.4} waited",
                    unit.name(),
                    waited / requests as f64
                );
                assert!(share >= 0.95);
            }
        }
    }
}
