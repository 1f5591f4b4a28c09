//! Rules for tests, with their bounds.

use std::sync::Arc;

use diana_algorithm::{Algorithm, Entry, Leasing, REGISTRY};
use diana_policy::Quota;
use diana_policy::time::{Now, Unit};
use diana_store::CounterSpec;
use fastrand::Rng;

use crate::laws::case::Case;
use crate::oracle::{Admission, Promise, oracle};

/// A rule's quota and its algorithm.
pub struct Rule {
    pub short: &'static str,
    pub entry: &'static Entry,
    pub quota: Quota,
    pub algorithm: Arc<dyn Algorithm>,
    /// Whether all requests have the same cost.
    pub is_even: bool,
}

impl Rule {
    pub fn new(short: &str, quota: Quota) -> Rule {
        Rule::try_new(short, quota).expect("a quota that means something")
    }

    pub fn try_new(short: &str, quota: Quota) -> Option<Rule> {
        let entry = REGISTRY.iter().find(|entry| entry.short == short)?;
        let algorithm = (entry.build)(&quota).ok()?;
        Some(Rule { short: entry.short, entry, quota, algorithm, is_even: true })
    }

    /// Returns true if requests are held until their turn.
    pub fn queues(&self) -> bool {
        oracle(self.short).max_delay(&self.quota) > 0
    }

    /// Any rule, or one with a limit of some dozens of requests per second, so that leases begin
    /// and end.
    pub fn random(entry: &'static Entry, rng: &mut Rng) -> Rule {
        if rng.u8(0..4) == 0 {
            let Case { quota, algorithm } = Case::random(entry, rng);
            let is_even = rng.bool();
            return Rule { short: entry.short, entry, quota, algorithm, is_even };
        }
        loop {
            let unit = if rng.u8(0..4) == 0 { Unit::Minute } else { Unit::Second };
            let Case { quota, .. } = Case::random(entry, rng);
            let cost = if rng.bool() { 1 } else { rng.u64(1..1000) };
            let rpu = cost * rng.u64(1..200) + rng.u64(0..cost);
            let burst = quota.burst.map(|_| cost * rng.u64(1..300));
            let quota = Quota { unit, rpu, cost, burst, ..quota };
            if let Ok(algorithm) = (entry.build)(&quota) {
                let is_even = rng.bool();
                return Rule { short: entry.short, entry, quota, algorithm, is_even };
            }
        }
    }

    /// The cost of the next request.
    pub fn cost(&self, rng: &mut Rng) -> u64 {
        match rng.u8(0..3) {
            _ if self.is_even => self.quota.cost,
            0 => 1,
            1 => rng.u64(1..=self.quota.cost.div_ceil(8)),
            _ => rng.u64(1..=self.quota.cost),
        }
    }

    /// The parameters for a store.
    pub fn spec(&self, keys: usize) -> CounterSpec {
        let Rule { entry, algorithm, quota, is_even, .. } = self;
        let lends = (entry.capabilities)(quota).leasing != Leasing::Never;
        CounterSpec {
            algorithm: algorithm.clone(),
            unit_cost: if *is_even || !lends { quota.cost } else { 1 },
            fingerprint: 7,
            keys,
            lines: diana_store::stores::lines(1),
            ..CounterSpec::new(entry, *quota, false).expect("a rule that means something")
        }
    }

    /// A step in ticks, of which some dozens pass while the permits are used up.
    pub fn pace(&self) -> u64 {
        let requests = (self.quota.rpu / self.quota.cost).max(1);
        (self.quota.period() / requests).max(1)
    }

    /// Checks one caller's admissions against the bound.
    pub fn verify(&self, past: &[Admission]) {
        let mut past: Vec<Admission> = past.to_vec();
        past.sort_by_key(|one| one.at.mono);
        let oracle = oracle(self.short);
        if !self.queues() && self.quota.warm_up.is_none() {
            for (number, Admission { at, cost, .. }) in past.iter().enumerate() {
                let promise = oracle.promise(&self.quota, &past[..number], *at, *cost);
                let fits = matches!(promise, Promise::Admitted { wait: 0 } | Promise::Either);
                assert!(fits, "{} gave too much at {at:?}", self.short);
            }
        }
        oracle.check_departures(&self.quota, past);
    }

    /// The remaining permits at `now` after these admissions, without any expiry.
    pub fn left(&self, past: &[Admission], now: Now) -> u64 {
        let mut state = vec![0; self.algorithm.properties().words];
        let mut new = state.clone();
        for Admission { at, cost, .. } in past {
            assert!(self.algorithm.step(&state, *at, 0, *cost, &mut new).is_admitted());
            std::mem::swap(&mut state, &mut new);
        }
        self.algorithm.balance(&state, now).remaining
    }
}
