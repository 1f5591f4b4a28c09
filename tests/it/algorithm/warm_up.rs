//! Warm-up, compared with Guava's floating-point arithmetic.

use std::sync::Arc;

use diana_algorithm::{Algorithm, REGISTRY};
use diana_policy::Quota;
use diana_policy::decision::{Decision, Retry};
use diana_policy::settlement::Settlement;
use diana_policy::time::{Micros, Now, SECOND, Unit};

const MS: Micros = 1000;

fn at(mono: Micros) -> Now {
    Now { mono, wall: 0 }
}

fn build(short: &str, quota: Quota) -> Arc<dyn Algorithm> {
    let entry = REGISTRY.iter().find(|entry| entry.short == short).unwrap();
    (entry.build)(&quota).unwrap()
}

/// `SmoothRateLimiter.SmoothWarmingUp` of Guava 33, with its names. Times are in microseconds.
struct Guava {
    stable_interval: f64,
    max_permits: f64,
    threshold_permits: f64,
    slope: f64,
    stored_permits: f64,
    next_free: f64,
}

impl Guava {
    fn new(rpu: u64, unit: Micros, warm_up: Micros) -> Guava {
        let stable_interval = unit as f64 / rpu as f64;
        let warm_up = warm_up as f64;
        let cold_interval = 3.0 * stable_interval;
        let threshold_permits = 0.5 * warm_up / stable_interval;
        let max_permits = threshold_permits + 2.0 * warm_up / (stable_interval + cold_interval);
        let slope = (cold_interval - stable_interval) / (max_permits - threshold_permits);
        Guava {
            stable_interval,
            max_permits,
            threshold_permits,
            slope,
            stored_permits: max_permits,
            next_free: 0.0,
        }
    }

    /// The wait of a request of `permits` at `now`.
    fn reserve(&mut self, permits: f64, now: f64) -> f64 {
        if now > self.next_free {
            let new = (now - self.next_free) / self.stable_interval;
            self.stored_permits = self.max_permits.min(self.stored_permits + new);
            self.next_free = now;
        }
        let wait = self.next_free - now;
        let stored = permits.min(self.stored_permits);
        self.next_free += self.stored_permits_to_wait(self.stored_permits, stored)
            + (permits - stored) * self.stable_interval;
        self.stored_permits -= stored;
        wait
    }

    fn stored_permits_to_wait(&self, stored: f64, mut take: f64) -> f64 {
        let above = stored - self.threshold_permits;
        let mut time = 0.0;
        if above > 0.0 {
            let taken = above.min(take);
            time =
                taken * (self.permits_to_time(above) + self.permits_to_time(above - taken)) / 2.0;
            take -= taken;
        }
        time + self.stable_interval * take
    }

    fn permits_to_time(&self, permits: f64) -> f64 {
        self.stable_interval + permits * self.slope
    }
}

#[test]
fn saturating_caller_waits_as_long_as_with_guava() {
    let quota = Quota {
        warm_up: Some(1500 * MS),
        max_delay: Some(20 * SECOND),
        max_queue: Some(100),
        ..Quota::new(Unit::Second, 5)
    };
    for short in ["TB", "LB"] {
        let algorithm = build(short, quota);
        let mut state = vec![0; algorithm.properties().words];
        let mut now = 0;
        // Seconds, as in the table of the source document but without the noise of its clock.
        for wait in [0.0, 0.546_667, 0.44, 0.333_334, 0.23, 0.2, 0.2, 0.2] {
            let mut new = state.clone();
            let decision = algorithm.step(&state, at(now), 0, 1, &mut new);
            let Decision::Admit { wait: held } = decision else { panic!("{decision:?}") };
            assert!((held as f64 / 1e6 - wait).abs() < 2e-6, "{short}: {held} for {wait}");
            now += held;
            state = new;
        }
        // Cold again, after two seconds and the taken slot: one request at once, and then the ramp.
        now += 1700 * MS;
        assert_eq!(algorithm.expires(&state, at(now)), now);
        assert_eq!(algorithm.balance(&state, at(now)).remaining, 1);
    }
}

#[test]
fn charge_is_returned_in_full() {
    let quota = Quota {
        warm_up: Some(7 * SECOND),
        max_delay: Some(20 * SECOND),
        max_queue: Some(100),
        ..Quota::new(Unit::Second, 3)
    };
    let algorithm = build("LB", quota);
    let now = at(5 * SECOND);
    let mut state = vec![0; algorithm.properties().words];
    for cost in [1, 2, 1, 3] {
        let (mut charged, mut back) = (state.clone(), state.clone());
        assert!(algorithm.step(&state, now, 0, cost, &mut charged).is_admitted());
        let refund = Settlement::refund(algorithm.receipt(&charged), cost);
        algorithm.settle(&charged, now, &refund, &mut back);
        let waits = |from: &[u64]| {
            let mut new = from.to_vec();
            [0, 2 * SECOND, 20 * SECOND].map(|later| {
                let old = new.clone();
                algorithm.step(&old, now.later(later), 0, 1, &mut new)
            })
        };
        assert_eq!(waits(&back), waits(&state));
        state = charged;
    }
}

#[test]
fn random_arrivals_wait_as_long_as_with_guava() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    for _ in 0..300 {
        let (_, unit) = Unit::ALL[rng.usize(0..Unit::ALL.len())];
        let rpu = 1 + (rng.u64(0..1 << 30) >> rng.u8(0..30)).min(999_999_999);
        let warm_up = (1 + (rng.u64(0..3_600_000) >> rng.u8(0..22))) * MS;
        let quota = Quota { warm_up: Some(warm_up), ..Quota::new(unit, rpu) };
        let algorithm = build("TB", quota);
        println!("{quota:?}");
        let mut guava = Guava::new(rpu, quota.period(), warm_up);
        let mut state = vec![0; algorithm.properties().words];
        let interval = quota.period() / rpu;
        let mut now = 0;
        for _ in 0..100 {
            now += match rng.u8(0..4) {
                0 => 0,
                1 => rng.u64(0..=4 * interval),
                2 => rng.u64(0..=warm_up / 8),
                _ => rng.u64(0..=2 * warm_up),
            };
            let cost = if rng.bool() { 1 } else { rng.u64(1..=rpu.min(9)) };
            let mut new = state.clone();
            let mut decision = algorithm.step(&state, at(now), 0, cost, &mut new);
            if let Decision::Refuse { retry: Retry::After(wait) } = decision {
                let expected = guava.next_free - now as f64;
                let near = 2.0 + expected * 1e-6;
                assert!((wait as f64 - expected).abs() <= near, "{wait} for {expected} at {now}");
                now += wait;
                decision = algorithm.step(&state, at(now), 0, cost, &mut new);
            }
            assert_eq!(decision, Decision::NOW);
            guava.reserve(cost as f64, now as f64);
            state = new;
        }
    }
}
